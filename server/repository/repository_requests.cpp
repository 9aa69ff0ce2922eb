// Loads and unloads that clients request, and those that ensembles cause.
#include <algorithm>
#include <chrono>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "server/repository/folder/layout_hints.h"
#include "server/repository/repository.h"
#include "server/repository/version_labels.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// How long running requests of an ensemble delay the unload of its steps' models.
constexpr auto kEnsembleTimeout = std::chrono::seconds(30);
// How long a failed on-demand load is not retried.
constexpr int64_t kRetryNs = 10'000'000'000;

std::string to_text(const std::string& name, const std::map<int64_t, std::string>& failures) {
  std::string text = concat("load failed for model '", name, "': ");
  for (const auto& [version, reason] : failures) {
    text += concat("version ", version, " is at UNAVAILABLE state: ", reason, ";\n");
  }
  return text;
}

void append(const Repository::Unloading& part, Repository::Unloading& all) {
  all.gone.insert(all.gone.end(), part.gone.begin(), part.gone.end());
  all.owners.insert(all.owners.end(), part.owners.begin(), part.owners.end());
}

}  // namespace

void Repository::check_explicit() const {
  if (settings_.mode == ControlMode::kExplicit) return;
  fail(ErrorCode::kUnavailable, "explicit model load / unload is not allowed",
       settings_.mode == ControlMode::kPoll ? " if polling is enabled" : " in mode none",
       "; the server was not started with --model-control-mode explicit");
}

void Repository::load(const LoadRequest& request) {
  check_explicit();
  check_model_name(request.name);
  load_model(request, /*is_along=*/false, {});
  load_waiting_ensembles(request.name);
  plan_ensembles_again(request.name);
}

void Repository::load_steps(const LoadPlan& plan, std::vector<std::string> chain) {
  const std::string& name = plan.layout.name;
  check(std::find(chain.begin(), chain.end(), name) == chain.end(), "load failed for model '", name,
        "': the ensemble runs itself");
  chain.push_back(name);
  for (const EnsembleStepConfig& step : plan.layout.config.ensemble_steps) {
    if (models_.is_served(step.model)) continue;
    try {
      check_model_name(step.model);
      load_model({.name = step.model, .config = {}, .files = {}}, /*is_along=*/true, chain);
    } catch (const Error& error) {
      fail(ErrorCode::kInvalidArgument, "load failed for model '", name, "': it runs model '", step.model,
           "': ", error.what());
    }
  }
}

void Repository::load_model(const LoadRequest& request, bool is_along, const std::vector<std::string>& chain) {
  const std::string& name = request.name;
  if (planner_.keeps_what_is_served(request)) return;
  const InFlightLoads::Load load(in_flight_loads_, name);
  LoadPlan plan;
  if (!request.has_weights_alone()) plan = planner_.of_request(request);
  const EnsembleSteps::Hold hold(ensembles_, plan.layout.config);
  if (plan.layout.config.is_ensemble()) load_steps(plan, chain);
  const auto room = budget_.hold();
  const NameLocks::Held held = names_.hold(name);
  check_work_cancelled();
  // What was read before the wait may be old; files that a client brought are not.
  if (plan.override_folders.empty()) plan = planner_.of_request(request, &plan);
  const bool was_override = models_.change(name, [&](ModelEntry& entry) {
    entry.is_loaded_along = is_along && (entry.is_loaded_along || !entry.is_served());
    return entry.plan.is_override();
  });
  // Replacing a client's files by those of the repository keeps the version numbers, so the reload must be forced.
  if (was_override && !plan.is_override()) plan.is_forced = true;
  if (plan.layout.versions.empty()) {
    fail(ErrorCode::kNotFound, "failed to load '", name,
         "', no version is available: ", hint_for_versions(plan.layout.folder));
  }
  if (planner_.is_served(plan)) return;
  const Failures failures = serve(plan);
  if (!failures.empty()) fail(ErrorCode::kInvalidArgument, to_text(name, failures));
}

void Repository::plan_ensembles_again(const std::string& step) {
  for (const std::string& name : ensembles_.running(step)) {
    try {
      const InFlightLoads::Load load(in_flight_loads_, name);
      const auto room = budget_.hold();
      const NameLocks::Held held = names_.hold(name);
      if (!ensembles_.is_outdated(name)) continue;
      LoadPlan plan = models_.plan_of_served(name).value();
      plan.is_forced = true;
      serve(plan);
    } catch (const Error& error) {
      log(LogLevel::kWarning, "ensemble cannot be loaded again", {{"model", name}, {"reason", error.what()}});
    }
  }
}

void Repository::load_waiting_ensembles(const std::string& step) {
  for (const std::string& name : ensembles_.waiting_for(step)) {
    try {
      load_model({.name = name, .config = {}, .files = {}}, /*is_along=*/false, {});
    } catch (const Error& error) {
      log(LogLevel::kWarning, "ensemble cannot be loaded again", {{"model", name}, {"reason", error.what()}});
    }
  }
}

Repository::Unloading Repository::withdraw_ensembles_with(const std::string& step, const std::string& reason,
                                                          bool is_withheld) {
  Unloading all{.name = step, .gone = {}, .owners = {}};
  for (const std::string& ensemble : ensembles_.running(step)) {
    append(withdraw(ensemble, reason, is_withheld), all);
    models_.change(ensemble, [&](ModelEntry& entry) { entry.waits_for_step = !is_withheld; });
  }
  // A request between two steps still needs the model.
  const auto deadline = std::chrono::steady_clock::now() + kEnsembleTimeout;
  for (const auto& gone : all.gone) gone.wait_until(deadline);
  return all;
}

Repository::Unloading Repository::unload(const std::string& name, bool with_dependents) {
  ensembles_.wait_for_loads_of(name, kEnsembleTimeout);
  if (!models_.has(name)) fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
  const std::string reason =
      with_dependents ? kUnloadedReason : concat(kUnloadedReason, " with model '", name, "', which it runs");
  Unloading unloading = withdraw_ensembles_with(name, reason, /*is_withheld=*/with_dependents);
  const std::vector<std::string> steps =
      with_dependents ? ensembles_.loaded_along_with(name) : std::vector<std::string>();
  const Unloading own = withdraw(name, kUnloadedReason, /*is_withheld=*/true);
  append(own, unloading);
  if (steps.empty()) return unloading;
  const auto deadline = std::chrono::steady_clock::now() + kEnsembleTimeout;
  for (const auto& gone : own.gone) gone.wait_until(deadline);
  for (const std::string& step : steps) {
    // A step that another ensemble runs stays loaded.
    if (ensembles_.running(step).empty()) append(unload(step, true), unloading);
  }
  return unloading;
}

Repository::Unloading Repository::unload_for_client(const std::string& name, bool with_dependents) {
  check_explicit();
  if (!models_.has(name)) {
    const std::vector<std::string> names = planner_.known_names();
    if (std::ranges::find(names, name) != names.end()) return {.name = name, .gone = {}, .owners = {}};
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found", right_names(name, names));
  }
  in_flight_loads_.cancel(name);
  return unload(name, with_dependents);
}

void Repository::set_labels(const std::string& name, const std::string& text) {
  if (!settings_.allows_labels) {
    fail(ErrorCode::kUnimplemented, "version labels are off: --allow-version-labels=false");
  }
  models_.set_labels(name, parse_labels(text));
}

bool Repository::load_on_demand(const std::string& name, std::function<void()> then) {
  if (!demand_) return false;
  const int64_t now_ns = Clock::system().now_ns();
  const bool can_say_now = models_.read(name, [now_ns](const ModelEntry& entry) {
    return entry.is_served() || entry.is_withheld || now_ns < entry.retry_ns;
  });
  if (can_say_now) return false;
  if (!models_.has(name)) {
    std::error_code error;
    const auto& roots = settings_.roots;
    const bool is_there = is_plain_name(name) && std::any_of(roots.begin(), roots.end(), [&](const auto& root) {
                            return fs::is_directory(fs::path(root) / name, error);
                          });
    if (!is_there) return false;
  }
  if (demand_->add(name, std::move(then))) return true;
  fail(ErrorCode::kResourceExhausted, "Exceeds maximum queue size: too many requests wait until model '", name,
       "' is loaded");
}

void Repository::load_demanded(const std::string& name) {
  std::string reason;
  try {
    load_model({.name = name, .config = {}, .files = {}}, /*is_along=*/false, {});
    plan_ensembles_again(name);
    return;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (models_.is_served(name)) return;
  set_error(name, "", {}, reason);
  models_.change(name, [](ModelEntry& entry) { entry.retry_ns = Clock::system().now_ns() + kRetryNs; });
}

}  // namespace tensord::server
