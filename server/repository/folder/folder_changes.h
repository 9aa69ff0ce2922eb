#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/repository/load_planner.h"

namespace tensord::server {

// Of each model that lies in a repository, the repositories it lies in.
using ModelRoots = std::map<std::string, std::vector<std::string>>;

// What the folders of the repositories have that the daemon does not serve so: what the start and the poller act on.
// Loads nothing. Thread-safe.
class FolderChanges {
 public:
  FolderChanges(const RepositorySettings& settings, const LoadPlanner& planner, const ModelTable& models)
      : settings_(settings), planner_(planner), models_(models) {}

  // Throws Error{kNotFound} when a repository is not there.
  ModelRoots list() const;
  // Those that the daemon starts with. Throws Error{kNotFound} for a name of the settings that is in no repository.
  std::vector<std::string> wanted_at_start(const ModelRoots& found) const;
  // Models that are known and lie in no repository any more.
  std::vector<std::string> gone(const ModelRoots& found) const;
  // Whether the model's files are others than those it was last loaded from, and have been at rest.
  bool has_changed(const std::string& name, const std::vector<std::string>& roots) const;

  struct Found {
    std::optional<LoadPlan> plan;  // none: the model cannot be served
    std::string root, error;       // of the model without a plan
    ModelStamp stamp;
  };
  Found plan(const std::string& name, const std::vector<std::string>& roots) const;

 private:
  const RepositorySettings& settings_;
  const LoadPlanner& planner_;
  const ModelTable& models_;
};

}  // namespace tensord::server
