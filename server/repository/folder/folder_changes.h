#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/repository/load_planner.h"

namespace tensord::server {

// The repositories that contain each model, by the model's name.
using ModelRoots = std::map<std::string, std::vector<std::string>>;

// Throws Error{kNotFound} if a name of --load-model is in no repository; "*" is all of them.
void check_models_to_load(const std::vector<std::string>& wanted, const ModelRoots& found);

// Compares the repositories' folders with what is served; the start and the poller act on the differences. Loads
// nothing. Thread-safe.
class FolderChanges {
 public:
  FolderChanges(const RepositorySettings& settings, const LoadPlanner& planner, const ModelTable& models)
      : settings_(settings), planner_(planner), models_(models) {}

  // Throws Error{kNotFound} if a repository is missing.
  ModelRoots list() const;
  // The models to load at the start. Throws Error{kNotFound} if a name in the settings is in no repository.
  std::vector<std::string> wanted_at_start(const ModelRoots& found) const;
  // Known models that are in no repository any more.
  std::vector<std::string> gone(const ModelRoots& found) const;
  // Whether the model's files have changed since they were last loaded, and have not changed again for a while.
  bool has_changed(const std::string& name, const std::vector<std::string>& roots) const;

  struct Found {
    std::optional<LoadPlan> plan;  // none: the model cannot be served
    std::string root, error;       // of a model without a plan
    ModelStamp stamp;
  };
  Found plan(const std::string& name, const std::vector<std::string>& roots) const;

 private:
  const RepositorySettings& settings_;
  const LoadPlanner& planner_;
  const ModelTable& models_;
};

}  // namespace tensord::server
