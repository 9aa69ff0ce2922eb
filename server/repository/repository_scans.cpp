// Models that come and go as the folders have them: at the start, and when they are polled.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "server/repository/layout_hints.h"
#include "server/repository/repository.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// A model whose files changed so shortly ago may still be being written; the next look finds it.
constexpr int64_t kMaxRestNs = 1'000'000'000;

int64_t file_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A folder that nobody has put anything into yet, and what a file system keeps at its root.
bool is_no_model(const fs::path& folder) {
  std::error_code error;
  if (folder.filename() == "lost+found") return true;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
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

void Repository::load_all() {
  const Roots found = list_models(options_.roots);
  warn_of_repositories(options_.roots);
  if (found.empty()) {
    log(LogLevel::kWarning, "the model repository has no models: expected NAME/1/model.pt in it",
        {{"folder", options_.roots.empty() ? "" : options_.roots.front()}});
  }
  const auto& only = options_.only;
  const bool wants_all =
      only.empty() ? options_.mode != ControlMode::kExplicit : std::find(only.begin(), only.end(), "*") != only.end();
  for (const std::string& name : only) {
    if (name != "*" && !found.contains(name)) {
      fail(ErrorCode::kNotFound, "--load-model ", name, ": model not found in any model repository");
    }
  }
  std::vector<LoadPlan> plans;
  for (const auto& [name, roots] : found) {
    if (!wants_all && std::find(only.begin(), only.end(), name) == only.end()) continue;
    std::optional<LoadPlan> plan = plan_found(name, roots);
    if (plan) plans.push_back(std::move(*plan));
    const std::unique_lock lock(mutex_);
    models_[name].is_required = true;
  }
  load_plans(plans);
  malloc_trim(0);  // sources, pickles and graphs are gone
  {
    const std::unique_lock lock(mutex_);
    is_loaded_ = true;
  }
  if (options_.mode == ControlMode::kPoll && options_.poll_interval_ms > 0) {
    poller_ =
        std::make_unique<PeriodicThread>(std::chrono::milliseconds(options_.poll_interval_ms), [this] { poll(); });
  }
}

std::optional<LoadPlan> Repository::plan_found(const std::string& name, const std::vector<std::string>& roots) {
  LoadPlan plan;
  try {
    check(roots.size() == 1, kTwoRepositories);
    plan.stamp = stamp_model(fs::path(roots[0]) / name);
    plan.layout = scan(roots[0], name);
  } catch (const std::exception& error) {
    set_error(name, roots[0], plan.stamp, error.what());
    return std::nullopt;
  }
  if (!plan.layout.versions.empty() || is_served(name)) return plan;
  const std::string hint = hint_for_versions(plan.layout.folder);
  if (is_no_model(plan.layout.folder)) {
    log(LogLevel::kWarning, "model has no versions", {{"model", name}, {"reason", hint}});
    return plan;
  }
  set_error(name, roots[0], plan.stamp, concat("no version is there: ", hint));
  return std::nullopt;
}

void Repository::load_plans(const std::vector<LoadPlan>& plans) {
  {
    const std::unique_lock lock(mutex_);
    for (const LoadPlan& plan : plans) {
      ModelEntry& entry = models_[plan.layout.name];
      if (entry.is_served()) continue;
      for (const auto& version : plan.layout.versions) entry.versions.try_emplace(version.number);
    }
  }
  std::atomic<size_t> next{0};
  const auto load_some = [&] {
    for (size_t i = next++; i < plans.size(); i = next++) {
      if (!plans[i].layout.config.is_ensemble()) serve_found(plans[i]);
    }
  };
  std::vector<Thread> threads;
  for (int i = 1; i < options_.load_threads && static_cast<size_t>(i) < plans.size(); ++i) {
    threads.emplace_back("load", load_some);
  }
  load_some();
  for (Thread& thread : threads) thread.join();
  load_ensembles(plans);
}

void Repository::load_ensembles(const std::vector<LoadPlan>& plans) {
  std::vector<const LoadPlan*> left;
  for (const LoadPlan& plan : plans) {
    if (plan.layout.config.is_ensemble()) left.push_back(&plan);
  }
  const auto runs_another = [&](const LoadPlan* plan) {
    const auto& steps = plan->layout.config.ensemble_steps;
    return std::any_of(steps.begin(), steps.end(), [&](const EnsembleStepConfig& step) {
      return std::any_of(left.begin(), left.end(),
                         [&](const LoadPlan* other) { return other != plan && other->layout.name == step.model; });
    });
  };
  while (!left.empty()) {
    // After those that they run. Where they run each other, loading one says so.
    auto chosen = std::find_if_not(left.begin(), left.end(), runs_another);
    if (chosen == left.end()) chosen = left.begin();
    const LoadPlan& plan = **chosen;
    left.erase(chosen);
    try {
      if (options_.mode == ControlMode::kExplicit) load_steps(plan, {});
      serve_found(plan);
    } catch (const Error& error) {
      set_error(plan.layout.name, plan.layout.root.string(), plan.stamp, error.what());
    }
  }
}

void Repository::serve_found(const LoadPlan& found) {
  const std::string& name = found.layout.name;
  const std::string root = found.layout.root.string();
  ModelStamp stamp = found.stamp;
  try {
    const LoadTickets::Ticket ticket(tickets_, name);
    const auto room = hold_memory();
    const NameLocks::Held held = names_.hold(name);
    // While this waited a training job may have added a version.
    stamp = stamp_model(found.layout.folder);
    if (stamp == found.stamp) {
      serve(found);
      return;
    }
    LoadPlan plan;
    plan.stamp = stamp;
    plan.layout = scan(root, name);
    serve(plan);
  } catch (const std::exception& error) {
    set_error(name, root, stamp, error.what());
  }
}

void Repository::unload_missing(const Roots& found) {
  std::vector<std::string> gone;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : models_) {
      if (!found.contains(name) && !entry.is_unloaded()) gone.push_back(name);
    }
  }
  for (const std::string& name : gone) {
    log(LogLevel::kInfo, "model is not in the repository any more", {{"model", name}});
    unload(name);
  }
}

void Repository::poll() {
  try {
    const Roots found = list_models(options_.roots);
    unload_missing(found);
    std::vector<std::string> changed;
    std::vector<LoadPlan> plans;
    for (const auto& [name, roots] : found) {
      if (!has_changed(name, roots)) continue;
      changed.push_back(name);
      std::optional<LoadPlan> plan = plan_found(name, roots);
      if (plan) plans.push_back(std::move(*plan));
    }
    add_ensembles_of(changed, found, plans);
    for (const LoadPlan& plan : plans) log(LogLevel::kInfo, "model has changed", {{"model", plan.layout.name}});
    if (!plans.empty()) load_plans(plans);
    for (const std::string& name : changed) plan_ensembles_again(name);
  } catch (const std::exception& error) {
    log(LogLevel::kError, "the model repository cannot be looked at", {{"reason", error.what()}});
  }
}

bool Repository::has_changed(const std::string& name, const std::vector<std::string>& roots) const {
  if (roots.size() > 1) {
    const std::shared_lock lock(mutex_);
    const auto model = models_.find(name);
    // Two of a name are an error of a model that is new, and nothing to one that serves.
    return model == models_.end();
  }
  const ModelStamp stamp = stamp_model(fs::path(roots[0]) / name);
  const int64_t age_ns = file_clock_ns() - stamp.newest_ns;
  const int64_t rest_ns = std::min(kMaxRestNs, options_.poll_interval_ms * 1'000'000 / 2);
  if (age_ns >= 0 && age_ns < rest_ns) return false;
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  return model == models_.end() || model->second.is_unloaded() || !(model->second.seen == stamp);
}

void Repository::add_ensembles_of(const std::vector<std::string>& changed, const Roots& found,
                                  std::vector<LoadPlan>& plans) {
  std::vector<std::string> waiting;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : models_) {
      const bool runs_changed = std::any_of(changed.begin(), changed.end(), [&, &entry = entry](const auto& step) {
        return entry.tried_steps.contains(step);
      });
      if (!entry.is_served() && runs_changed && found.contains(name)) waiting.push_back(name);
    }
  }
  for (const std::string& name : waiting) {
    if (std::any_of(plans.begin(), plans.end(), [&](const auto& plan) { return plan.layout.name == name; })) continue;
    std::optional<LoadPlan> plan = plan_found(name, found.at(name));
    if (plan) plans.push_back(std::move(*plan));
  }
}

}  // namespace tensord::server
