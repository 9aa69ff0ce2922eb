#include "server/repository/ensemble_steps.h"

#include <algorithm>

#include "core/base/mutex.h"

namespace tensord::server {

EnsembleSteps::Hold::Hold(EnsembleSteps& steps, const ModelConfig& ensemble) : steps_(steps) {
  for (const EnsembleStepConfig& step : ensemble.ensemble_steps) names_.insert(step.model);
  const MutexLock lock(steps_.mutex_);
  for (const std::string& name : names_) ++steps_.held_[name];
}

EnsembleSteps::Hold::~Hold() {
  {
    const MutexLock lock(steps_.mutex_);
    for (const std::string& name : names_) {
      const auto held = steps_.held_.find(name);
      if (--held->second == 0) steps_.held_.erase(held);
    }
  }
  steps_.released_.notify_all();
}

void EnsembleSteps::wait_for_loads_of(const std::string& step, std::chrono::seconds timeout) {
  MutexLock lock(mutex_);
  released_.wait_for(lock, timeout, [&]() TENSORD_REQUIRES(mutex_) { return !held_.contains(step); });
}

std::vector<std::string> EnsembleSteps::running(const std::string& step) const {
  std::vector<std::string> found = {step};
  models_.read([&](const ModelTable::Models& models) {
    // Ensembles may contain ensembles.
    for (size_t i = 0; i < found.size(); ++i) {
      for (const auto& [name, entry] : models) {
        if (!entry.is_served() || !entry.runs(found[i])) continue;
        if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
      }
    }
  });
  found.erase(found.begin());
  return found;
}

std::vector<std::string> EnsembleSteps::waiting_for(const std::string& step) const {
  return models_.read([&](const ModelTable::Models& models) {
    std::vector<std::string> waiting;
    for (const auto& [name, entry] : models) {
      if (entry.waits_for_step && entry.runs(step)) waiting.push_back(name);
    }
    return waiting;
  });
}

bool EnsembleSteps::is_outdated(const std::string& ensemble) const {
  using Revisions = std::map<std::string, uint64_t>;
  const Revisions planned =
      models_.read(ensemble, [](const ModelEntry& entry) { return entry.is_served() ? entry.planned : Revisions(); });
  return std::any_of(planned.begin(), planned.end(), [&](const auto& step) {
    return models_.read(step.first, [](const ModelEntry& entry) { return entry.revision; }) != step.second;
  });
}

std::vector<std::string> EnsembleSteps::loaded_along_with(const std::string& ensemble) const {
  const auto steps =
      models_.read(ensemble, [](const ModelEntry& entry) { return entry.plan.layout.config.ensemble_steps; });
  std::set<std::string> found;
  for (const EnsembleStepConfig& step : steps) {
    if (models_.read(step.model, [](const ModelEntry& entry) { return entry.is_loaded_along; }))
      found.insert(step.model);
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> EnsembleSteps::that_tried(const std::vector<std::string>& steps) const {
  return models_.read([&](const ModelTable::Models& models) {
    std::vector<std::string> waiting;
    for (const auto& [name, entry] : models) {
      const bool tried_one = std::any_of(steps.begin(), steps.end(), [&, &entry = entry](const auto& step) {
        return entry.tried_steps.contains(step);
      });
      if (!entry.is_served() && tried_one) waiting.push_back(name);
    }
    return waiting;
  });
}

std::vector<const LoadPlan*> EnsembleSteps::in_order(const std::vector<LoadPlan>& plans) {
  std::vector<const LoadPlan*> left, out;
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
    // On a cycle, loading one of them reports the error.
    auto chosen = std::find_if_not(left.begin(), left.end(), runs_another);
    if (chosen == left.end()) chosen = left.begin();
    out.push_back(*chosen);
    left.erase(chosen);
  }
  return out;
}

}  // namespace tensord::server
