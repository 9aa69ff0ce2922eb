#include "server/repository/repository.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/clock.h"
#include "core/base/delay_point.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/base/utf8.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/memory/accounts.h"
#include "server/repository/folder/transient_error.h"

namespace tensord::server {
namespace {

constexpr auto kDrainLookInterval = std::chrono::milliseconds(1);
// How long a load waits for an evicted model's memory; running requests may hold it longer.
constexpr auto kRoomTimeout = std::chrono::seconds(30);

}  // namespace

ControlMode parse_control_mode(const std::string& text) {
  if (text == "none") return ControlMode::kNone;
  if (text == "poll") return ControlMode::kPoll;
  check(text == "explicit", "a model control mode is none, poll or explicit, got '", text, "'");
  return ControlMode::kExplicit;
}

Repository::Repository(Options options, ModelFactory factory, Metrics& metrics)
    : settings_(std::move(options)),
      metrics_(metrics),
      loader_(settings_, std::move(factory), metrics, *this),
      models_(settings_.allows_labels, settings_.memory_limit_bytes > 0),
      planner_(settings_, models_),
      folders_(settings_, planner_, models_),
      ensembles_(models_),
      budget_(settings_.memory_limit_bytes, models_,
              settings_.loads_on_demand
                  ? [this](const std::string& victim, const std::string& other) { evict(victim, other); }
                  : MemoryBudget::Evict()),
      in_flight_loads_(settings_.load_timeout_ns) {
  if (settings_.loads_on_demand) {
    metrics_.add_evictions();
    demand_ = std::make_unique<DemandLoads>(settings_.load_threads, settings_.max_queue_size,
                                            [this](const std::string& name) { load_demanded(name); });
  }
}

Repository::~Repository() { stop(); }

void Repository::stop() {
  in_flight_loads_.cancel_all();
  poller_.reset();
  if (demand_) demand_->stop();
  planner_.close();
}

bool Repository::is_ready(const std::string& name, const std::string& version) const {
  try {
    const auto found = find(name, version);
    return found && !(found->signature().is_on_device() && *cuda::why_lost() != 0);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    return false;
  }
}

ModelConfig Repository::config_of(const std::string& name) const {
  const std::optional<LoadPlan> plan = models_.plan_of_served(name);
  return plan ? plan->layout.config : ModelConfig();
}

bool Repository::has_model(const std::string& name) const {
  return models_.read(name, [](const ModelEntry& entry) { return !entry.is_unloaded(); });
}

std::vector<Repository::IndexEntry> Repository::index() const {
  ModelRoots on_disk;
  try {
    on_disk = folders_.list();
  } catch (const Error&) {
    // A repository that disappeared has no models besides those that are served.
  }
  return models_.index(on_disk);
}

std::map<std::string, int64_t> Repository::labels(const std::string& name) const {
  return models_.read(name, [](const ModelEntry& entry) { return entry.labels; });
}

void Repository::load_all() {
  const ModelRoots found = folders_.list();
  std::vector<LoadPlan> plans;
  for (const std::string& name : folders_.wanted_at_start(found)) {
    add_plan(name, found.at(name), plans);
    models_.change(name, [](ModelEntry& entry) { entry.is_required = true; });
  }
  load_plans(plans);
  malloc_trim(0);  // frees the memory of sources, pickles and graphs
  is_loaded_ = true;
  if (settings_.mode == ControlMode::kPoll && settings_.poll_interval_ms > 0) {
    poller_ =
        std::make_unique<PeriodicThread>(std::chrono::milliseconds(settings_.poll_interval_ms), [this] { poll(); });
  }
}

void Repository::poll() {
  try {
    const ModelRoots found = folders_.list();
    for (const std::string& name : folders_.gone(found)) {
      log(LogLevel::kInfo, "model is not in the repository any more", {{"model", name}});
      unload(name);
    }
    std::vector<std::string> changed;
    std::vector<LoadPlan> plans;
    for (const auto& [name, roots] : found) {
      if (!folders_.has_changed(name, roots)) continue;
      changed.push_back(name);
      add_plan(name, roots, plans);
    }
    for (const std::string& name : ensembles_.that_tried(changed)) {
      const bool is_planned =
          std::any_of(plans.begin(), plans.end(), [&](const LoadPlan& plan) { return plan.layout.name == name; });
      if (!is_planned && found.contains(name)) add_plan(name, found.at(name), plans);
    }
    for (const LoadPlan& plan : plans) log(LogLevel::kInfo, "model has changed", {{"model", plan.layout.name}});
    if (!plans.empty()) load_plans(plans);
    for (const std::string& name : changed) plan_ensembles_again(name);
  } catch (const std::exception& error) {
    log(LogLevel::kError, "the model repository cannot be looked at", {{"reason", error.what()}});
  }
}

void Repository::add_plan(const std::string& name, const std::vector<std::string>& roots,
                          std::vector<LoadPlan>& plans) {
  FolderChanges::Found found = folders_.plan(name, roots);
  if (found.plan) {
    plans.push_back(std::move(*found.plan));
  } else {
    tell_failure(name, found.error);
    set_error(name, found.root, found.stamp, found.error);
  }
}

void Repository::load_plans(const std::vector<LoadPlan>& plans) {
  for (const LoadPlan& plan : plans) {
    models_.change(plan.layout.name, [&](ModelEntry& entry) { entry.expect(plan); });
  }
  std::atomic<size_t> next{0};
  const auto load_some = [&] {
    for (size_t i = next++; i < plans.size(); i = next++) {
      if (!plans[i].layout.config.is_ensemble()) serve_found(plans[i]);
    }
  };
  std::vector<Thread> threads;
  for (int i = 1; i < settings_.load_threads && static_cast<size_t>(i) < plans.size(); ++i) {
    threads.emplace_back("load", load_some);
  }
  load_some();
  for (Thread& thread : threads) thread.join();
  for (const LoadPlan* plan : EnsembleSteps::in_order(plans)) {
    try {
      if (settings_.mode == ControlMode::kExplicit) load_steps(*plan, {});
      serve_found(*plan);
    } catch (const Error& error) {
      tell_failure(plan->layout.name, error.what());
      set_error(plan->layout.name, plan->layout.root.string(), plan->stamp, error.what());
    }
  }
}

void Repository::serve_found(const LoadPlan& found) {
  const std::string& name = found.layout.name;
  const std::string root = found.layout.root.string();
  ModelStamp stamp = found.stamp;
  bool is_told = false;
  try {
    const InFlightLoads::Load load(in_flight_loads_, name);
    const auto room = budget_.hold();
    const NameLocks::Held held = names_.hold(name);
    // A training job may have added a version in the meantime.
    stamp = stamp_model(found.layout.folder);
    LoadPlan plan = found;
    if (stamp != found.stamp) {
      plan = LoadPlan();
      plan.stamp = stamp;
      plan.layout = planner_.scan(root, name);
    }
    is_told = true;
    serve(plan);
  } catch (const std::exception& error) {
    if (!is_told) tell_failure(name, error.what());
    set_error(name, root, is_retryable(error) ? ModelStamp() : stamp, error.what());
  }
}

Repository::Failures Repository::serve(const LoadPlan& plan) {
  const std::string& name = plan.layout.name;
  Failures failures;
  LoadedVersions loaded;
  const bool is_reload = models_.is_served(name);
  const auto wanted = models_.change([&](ModelTable::Models& models) {
    ModelEntry& entry = models[name];
    entry.tried_steps.clear();
    entry.planned.clear();
    for (const EnsembleStepConfig& step : plan.layout.config.ensemble_steps) {
      entry.tried_steps.insert(step.model);
      const auto model = models.find(step.model);
      entry.planned[step.model] = model == models.end() ? 0 : model->second.revision;
    }
    return entry.begin(plan);
  });
  try {
    budget_.make_room_for(name, wanted);
    for (const ModelLayout::Version* version : wanted) {
      LoadedVersion made = loader_.load(plan.layout, *version, is_reload);
      made.stamp = plan.stamp_of(version->number);
      if (!made.handle) failures[version->number] = made.reason;
      loaded[version->number] = std::move(made);
    }
    budget_.make_room_for(name, loaded);
  } catch (const std::exception& error) {
    // Out of memory: the model as a whole cannot be loaded.
    for (const ModelLayout::Version* version : wanted) {
      loaded[version->number].handle.reset();
      loaded[version->number].reason = to_valid_utf8(error.what());
    }
    commit(plan, std::move(loaded));
    tell_failure(name, error.what());
    throw;
  }
  commit(plan, std::move(loaded));
  return failures;
}

void Repository::commit(const LoadPlan& plan, LoadedVersions loaded) {
  TENSORD_DELAY("repository.commit");
  const std::string& name = plan.layout.name;
  std::vector<std::shared_ptr<ModelVersion>> retired =
      models_.change(name, [&](ModelEntry& entry) { return entry.commit(plan, std::move(loaded)); });
  TENSORD_DELAY("repository.retire");
  for (const auto& version : retired) version->metrics().set_ready(false);
  show_ready(name);
  for (auto& version : retired) {
    const int64_t number = std::stoll(version->version());
    retired_.add(std::move(version), [this, name, number] { forget_metrics(name, number); });
  }
}

void Repository::show_ready(const std::string& name) {
  models_.read(name, [&](const ModelEntry& entry) {
    for (const auto& [number, version] : entry.versions) {
      if (!version.belongs()) continue;
      metrics_.model(name, std::to_string(number)).set_ready(version.served.handle != nullptr);
    }
    return true;
  });
}

void Repository::set_error(const std::string& name, const std::string& root, const ModelStamp& stamp,
                           const std::string& error) {
  // Another load may have started after this one failed; its state must not be overwritten.
  const NameLocks::Held held = names_.hold(name);
  models_.change(name, [&](ModelEntry& entry) { entry.fail(error, root, stamp); });
}

void Repository::tell_failure(const std::string& name, const std::string& reason) {
  log(LogLevel::kError, "model cannot be served", {{"model", name}, {"reason", reason}});
  metrics_.count_load(name, false);
}

Repository::Unloading Repository::withdraw(const std::string& name, const std::string& reason, bool is_withheld) {
  const NameLocks::Held held = names_.hold(name);
  Unloading unloading{.name = name, .gone = {}, .owners = {}};
  if (!models_.has(name)) return unloading;
  auto ended = models_.change(name, [&](ModelEntry& entry) { return entry.unload(reason, is_withheld); });
  for (auto& [number, version] : ended) {
    version->metrics().set_ready(false);
    unloading.owners.push_back(version->owner());
    const auto on_gone = [this, name, reason, number = number] {
      if (models_.has(name)) models_.change(name, [&](ModelEntry& entry) { entry.record_gone(number, reason); });
      forget_metrics(name, number);
    };
    unloading.gone.push_back(retired_.add(std::move(version), on_gone));
  }
  return unloading;
}

// Removes the metrics of a version that has ended, unless it is served again.
void Repository::forget_metrics(const std::string& name, int64_t version) {
  const bool is_back = models_.read(name, [&](const ModelEntry& entry) { return entry.handle_of(version) != nullptr; });
  if (!is_back) metrics_.forget(name, std::to_string(version));
}

void Repository::evict(const std::string& victim, const std::string& in_favor_of) {
  log(LogLevel::kInfo, "model is unloaded to make room", {{"model", victim}, {"for", in_favor_of}});
  metrics_.count_eviction(victim);
  const std::string reason = concat(kUnloadedReason, " to make room; a request loads it again");
  withdraw_ensembles_with(victim, reason, /*is_withheld=*/false);
  const Unloading unloading = withdraw(victim, reason, /*is_withheld=*/false);
  try {
    wait_until_gone(unloading, kRoomTimeout);
  } catch (const Error& error) {
    log(LogLevel::kWarning, "memory is not back yet", {{"model", victim}, {"reason", error.what()}});
  }
}

void Repository::wait_until_gone(const Unloading& unloading, std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto fail_late = [&](const auto&... parts) {
    fail(ErrorCode::kDeadlineExceeded, "model '", unloading.name, "' takes no requests any more, but ", parts...);
  };
  for (const auto& gone : unloading.gone) {
    if (gone.wait_until(deadline) != std::future_status::ready) fail_late("some that it took still run");
  }
  // Responses in flight hold their tensors.
  for (const OwnerId owner : unloading.owners) {
    for (uint64_t left = bytes_of_owner(owner); left > 0 && !models_.is_owner_served(owner);
         left = bytes_of_owner(owner)) {
      if (std::chrono::steady_clock::now() >= deadline) fail_late(left, " bytes of its tensors are still in use");
      std::this_thread::sleep_for(kDrainLookInterval);
    }
  }
  if (unloading.gone.empty()) return;
  trim_allocators();
  malloc_trim(0);
}

}  // namespace tensord::server
