#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/repository/model_table.h"
#include "server/repository/repository_settings.h"

namespace tensord::server {

// A client's request to load a model.
struct LoadRequest {
  std::string name;
  std::optional<std::string> config;         // JSON; replaces config.pbtxt
  std::map<std::string, std::string> files;  // path in the model's folder → bytes; replaces the folder

  // Whether the request has only weights, for the archive of the served version.
  bool has_weights_alone() const;
};

// The archive of a version.
struct VersionSource {
  std::filesystem::path file;
  int64_t version = 0;
};

// Throws Error: kInvalidArgument, kNotFound (no model folder has that name).
void check_model_name(const std::string& name);

// Decides what to serve of a model, from its folder and from what clients sent. Loads nothing. Thread-safe.
class LoadPlanner {
 public:
  LoadPlanner(const RepositorySettings& settings, const ModelTable& models)
      : settings_(settings), models_(models), overrides_(settings.override_limit_bytes) {}
  // Removes the files that clients sent; the process may end without running destructors.
  void close() { overrides_.close(); }

  // The repository that the model is or would be served from.
  std::string root_of(const std::string& name) const;
  // Reads the model's folder, with `config` in place of its own. Throws Error.
  ModelLayout scan(const std::string& root, const std::string& name, const ModelConfig* config = nullptr) const;
  // See Repository::source_of().
  VersionSource source_of(const std::string& name, int64_t version) const;

  // The plan for the folder's contents alone, without what a client sent. Throws Error.
  LoadPlan of_folder(const std::string& root, const std::string& name) const;
  // See Repository::load(). `earlier` is a plan of the same request, whose configuration is not read, and warned of,
  // again. Throws Error.
  LoadPlan of_request(const LoadRequest& request, const LoadPlan* earlier = nullptr);
  // Whether the request sends nothing new, and the files and configuration that a client sent before stay.
  bool keeps_what_is_served(const LoadRequest& request) const;
  // The models of the repositories and those that clients sent, for hints. Throws Error{kNotFound} if a repository is
  // missing.
  std::vector<std::string> known_names() const;
  // Whether everything in the plan is served already.
  bool is_served(const LoadPlan& plan) const;

 private:
  std::string find_root(const std::string& name) const;  // empty: in no repository
  LoadPlan of_whole(const LoadRequest& request, const LoadPlan* earlier);
  LoadPlan with_weights(const LoadRequest& request);
  // The client's configuration: the request's, or for the repository's files the one sent before, unless the files that
  // all versions share have changed (`shared_stamp`).
  std::shared_ptr<const ModelConfig> config_for(const LoadRequest& request, const std::string& shared_stamp,
                                                const LoadPlan* earlier) const;

  const RepositorySettings& settings_;
  const ModelTable& models_;
  OverrideStore overrides_;
};

}  // namespace tensord::server
