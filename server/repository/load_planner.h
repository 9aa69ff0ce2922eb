#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "server/repository/model_table.h"
#include "server/repository/repository_settings.h"

namespace tensord::server {

// What a client asks to load.
struct LoadRequest {
  std::string name;
  std::optional<std::string> config;         // JSON, instead of config.pbtxt
  std::map<std::string, std::string> files;  // path in the model's folder → bytes, instead of the folder

  // The weights of one version, to be put into the archive that is served.
  bool has_weights_alone() const;
};

// The archive of a version.
struct VersionSource {
  std::filesystem::path file;
  int64_t version = 0;
};

// Throws Error: kInvalidArgument, kNotFound (no folder of a model has that name).
void check_model_name(const std::string& name);

// Finds out what is to be served of a model: from its folder, from what a client brought, or from both. Loads nothing.
// Thread-safe.
class LoadPlanner {
 public:
  LoadPlanner(const RepositorySettings& settings, const ModelTable& models)
      : settings_(settings), models_(models), overrides_(settings.override_limit_bytes) {}
  // Files of clients go; the process may end without destructors.
  void close() { overrides_.close(); }

  // The repository that the model is served from, or would be.
  std::string root_of(const std::string& name) const;
  // The model's folder as it is, with `config` instead of its own. Throws Error.
  ModelLayout scan(const std::string& root, const std::string& name, const ModelConfig* config = nullptr) const;
  // See Repository::source_of().
  VersionSource source_of(const std::string& name, int64_t version) const;

  // By the folder alone; what a client brought is given up. Throws Error.
  LoadPlan of_folder(const std::string& root, const std::string& name) const;
  // See Repository::load(). Throws Error.
  LoadPlan of_request(const LoadRequest& request);
  // The request brings nothing, and the model serves files and a configuration of a client, which stay.
  bool keeps_what_is_served(const LoadRequest& request) const;
  // All of the plan is served already.
  bool is_served(const LoadPlan& plan) const;

 private:
  std::string find_root(const std::string& name) const;  // empty: it is in none
  LoadPlan of_whole(const LoadRequest& request);
  LoadPlan with_weights(const LoadRequest& request);
  // The client's configuration: what the request has, or for the repository's files what it brought before, unless
  // what all versions share (`shared_stamp`) has changed.
  std::shared_ptr<const ModelConfig> config_for(const LoadRequest& request, const std::string& shared_stamp) const;

  const RepositorySettings& settings_;
  const ModelTable& models_;
  OverrideStore overrides_;
};

}  // namespace tensord::server
