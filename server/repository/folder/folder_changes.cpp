#include "server/repository/folder/folder_changes.h"

#include <algorithm>
#include <ctime>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "server/repository/folder/layout_hints.h"
#include "server/repository/folder/transient_error.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// Files that changed more recently may still be being written; the next scan picks them up.
constexpr int64_t kMaxRestNs = 1'000'000'000;

int64_t file_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// An empty folder, or one that file systems create at their root.
bool is_no_model(const fs::path& folder) {
  std::error_code error;
  if (folder.filename() == "lost+found") return true;
  for (fs::directory_iterator at(folder, error); at != fs::directory_iterator(); at.increment(error)) {
    if (is_plain_name(at->path().filename().string())) return false;
  }
  return true;
}

void warn_of_repositories(const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    for (const std::string& hint : hints_for_repository(root)) {
      log(LogLevel::kWarning, "model repository", {{"folder", root}, {"warning", hint}});
    }
  }
}

}  // namespace

ModelRoots FolderChanges::list() const { return list_models(settings_.roots); }

void check_models_to_load(const std::vector<std::string>& wanted, const ModelRoots& found) {
  for (const std::string& name : wanted) {
    if (name == "*" || found.contains(name)) continue;
    std::vector<std::string> names;
    for (const auto& [there, roots] : found) names.push_back(there);
    fail(ErrorCode::kNotFound, "--load-model ", name, ": model not found in any model repository",
         right_names(name, names));
  }
}

std::vector<std::string> FolderChanges::wanted_at_start(const ModelRoots& found) const {
  warn_of_repositories(settings_.roots);
  if (found.empty()) {
    log(LogLevel::kWarning, "the model repository has no models: expected NAME/1/model.pt in it",
        {{"folder", settings_.roots.at(0)}});
  }
  const auto& only = settings_.only;
  const bool wants_all =
      only.empty() ? settings_.mode != ControlMode::kExplicit : std::find(only.begin(), only.end(), "*") != only.end();
  check_models_to_load(only, found);
  std::vector<std::string> wanted;
  for (const auto& [name, roots] : found) {
    if (wants_all || std::find(only.begin(), only.end(), name) != only.end()) wanted.push_back(name);
  }
  return wanted;
}

std::vector<std::string> FolderChanges::gone(const ModelRoots& found) const {
  return models_.read([&](const ModelTable::Models& models) {
    std::vector<std::string> gone;
    for (const auto& [name, entry] : models) {
      // A model that never had versions and has no error cannot disappear.
      const bool is_there = entry.has_versions() ? !entry.is_unloaded() : !entry.error.empty();
      if (!found.contains(name) && is_there) gone.push_back(name);
    }
    return gone;
  });
}

bool FolderChanges::has_changed(const std::string& name, const std::vector<std::string>& roots) const {
  // A name in two repositories is an error for a new model; a model that is served keeps serving.
  if (roots.size() > 1) return !models_.has(name);
  const ModelStamp stamp = stamp_model(fs::path(roots[0]) / name);
  const int64_t age_ns = file_clock_ns() - stamp.newest_ns;
  const int64_t rest_ns = std::min(kMaxRestNs, settings_.poll_interval_ms * 1'000'000 / 2);
  if (age_ns >= 0 && age_ns < rest_ns) return false;
  return !models_.read(name, [&](const ModelEntry& entry) { return !entry.is_unloaded() && entry.seen == stamp; });
}

FolderChanges::Found FolderChanges::plan(const std::string& name, const std::vector<std::string>& roots) const {
  Found found{.plan = std::nullopt, .root = roots[0], .error = {}, .stamp = {}};
  LoadPlan plan;
  try {
    check(roots.size() == 1, kTwoRepositories);
    plan.stamp = found.stamp = stamp_model(fs::path(roots[0]) / name);
    plan.layout = planner_.scan(roots[0], name);
  } catch (const std::exception& error) {
    found.error = error.what();
    if (is_retryable(error)) found.stamp = {};  // makes the next scan try again
    return found;
  }
  if (plan.layout.versions.empty() && !models_.is_served(name)) {
    const std::string hint = hint_for_versions(plan.layout.folder);
    if (!is_no_model(plan.layout.folder)) {
      found.error = concat("no version is there: ", hint);
      return found;
    }
    log(LogLevel::kWarning, "model has no versions", {{"model", name}, {"reason", hint}});
  }
  found.plan = std::move(plan);
  return found;
}

}  // namespace tensord::server
