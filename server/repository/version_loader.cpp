#include "server/repository/version_loader.h"

#include <algorithm>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory_limit.h"
#include "core/base/parallel.h"
#include "core/base/thread_priority.h"
#include "core/base/utf8.h"
#include "core/tensor/memory/accounts.h"
#include "core/tensor/memory/owner_limit.h"
#include "server/executor/model/instance_placement.h"
#include "server/executor/strategies/ensemble_plan.h"
#include "server/repository/folder/transient_error.h"

namespace tensord::server {
namespace {

// All warnings about a loaded version as one string.
std::string warning_text(const ModelVersion& version, const ModelLayout& model) {
  std::string text;
  const auto add = [&](const std::string& warning) {
    log(LogLevel::kWarning, "model served with a warning",
        {{"model", version.name()}, {"version", version.version()}, {"warning", warning}});
    text += concat(text.empty() ? "warning: " : "; ", warning);
  };
  for (const std::string& warning : version.warnings()) add(warning);
  for (const std::string& warning : model.warnings) add(warning);
  return text;
}

std::string why_not_loaded(const std::exception& error) {
  try {
    check_work_cancelled();
    return error.what();
  } catch (const Error& given_up) {
    return concat("the load was canceled: ", given_up.what());
  }
}

// Limits the memory that a load may allocate: the limit for all models, or half of the memory, or twice the file size
// if that is larger.
class LoadLimit {
 public:
  LoadLimit(OwnerId owner, uint64_t limit_bytes, uint64_t file_bytes)
      : owner_(owner),
        is_configured_(limit_bytes > 0),
        room_(is_configured_ ? limit_bytes : std::max<uint64_t>(memory_limit() / 2, 2 * file_bytes)) {
    // A reloaded version shares its owner with the version that serves until then.
    uint64_t live_bytes = 0;
    for (const auto& [device, allocator] : used_allocators())
      live_bytes = std::max(live_bytes, allocator->live_bytes_of(owner));
    set_owner_limit(owner, live_bytes + room_);
  }
  ~LoadLimit() { set_owner_limit(owner_, 0); }
  LoadLimit(const LoadLimit&) = delete;
  LoadLimit& operator=(const LoadLimit&) = delete;

  bool is_why(const std::exception& error) const {
    const auto* known = dynamic_cast<const Error*>(&error);
    return known && known->code() == ErrorCode::kResourceExhausted && was_limit_reached(owner_);
  }
  std::string to_string() const {
    return is_configured_ ? concat("--model-memory-limit of ", room_, " leaves")
                          : concat("the ", room_, " bytes that a load may take without --model-memory-limit");
  }

 private:
  const OwnerId owner_;
  const bool is_configured_;
  const uint64_t room_;
};

OwnerId owner_of(const ModelLayout& model, const ModelLayout::Version& version) {
  return memory_owner(concat(model.name, "/", version.number));
}

// Whether all instances run on devices.
bool is_elsewhere(const Signature& signature) {
  if (signature.instances.empty()) return !signature.device.is_host();
  return std::ranges::none_of(signature.instances, [](Device device) { return device.is_host(); });
}

}  // namespace

VersionLoader::VersionLoader(const RepositorySettings& settings, ModelFactory factory, Metrics& metrics,
                             ModelDirectory& directory)
    : settings_(settings),
      factory_(std::move(factory)),
      metrics_(metrics),
      directory_(directory),
      cores_(settings.cores) {}

std::unique_ptr<const Model> VersionLoader::open(const ModelLayout& model, const ModelLayout::Version& version,
                                                 OwnerId owner) {
  const ModelConfig& config = model.config;
  const MemoryOwnerScope owner_scope(owner);
  if (config.is_ensemble()) return make_ensemble_model(model.name, config, directory_);
  return factory_({version.file.string(), version.weights.string(), settings_.copies_archives}, config);
}

std::optional<HostPlacement> VersionLoader::place_load(const ModelLayout& model) const {
  const ModelConfig& config = model.config;
  const HostPolicies& policies = settings_.host_policies;
  for (const InstanceGroupConfig& group : config.instance_groups) {
    if (!group.host_policy.empty() && !policies.contains(group.host_policy)) {
      log(LogLevel::kWarning, "host policy ignored: --host-policy does not define it",
          {{"model", model.name}, {"policy", group.host_policy}});
    }
  }
  return policies.empty() ? std::nullopt
                          : joined(host_placements(config, policies, place_instances(config, {}), 1, {}));
}

ModelVersion::Options VersionLoader::options_for(const ModelConfig& config, const Signature& signature) {
  ModelVersion::Options options;
  const size_t placed = signature.instances.size();
  options.workers = placed > 0 ? static_cast<int>(placed) : config.workers > 0 ? config.workers : settings_.workers;
  options.threads_per_worker = config.threads > 0                 ? config.threads
                               : settings_.threads_per_worker > 0 ? settings_.threads_per_worker
                                                                  : std::max(1, available_cores() / options.workers);
  options.placements =
      host_placements(config, settings_.host_policies, signature.instances, options.workers, signature.device);
  for (const HostPlacement* placement : options.placements) {
    if (placement && config.threads == 0 && !placement->cores.empty())
      options.threads_per_worker = std::min(options.threads_per_worker, static_cast<int>(placement->cores.size()));
  }
  options.cores = cores();
  if (is_elsewhere(signature)) {  // one thread queues the work of the device
    options.threads_per_worker = 1;
    options.cores = nullptr;
  }
  options.max_queue_size = settings_.max_queue_size;
  options.directory = &directory_;
  options.cache = settings_.cache;
  options.rate_limiter = settings_.rate_limiter;
  options.pool = &pool_;
  return options;
}

std::shared_ptr<ModelVersion> VersionLoader::make(const ModelLayout& layout, const ModelLayout::Version& version,
                                                  int nice) {
  const ModelConfig& config = layout.config;
  // Weights lie where the instances run.
  const std::optional<HostPlacement> shared_placement = place_load(layout);
  const PlacementScope placement(shared_placement ? &*shared_placement : nullptr);
  std::unique_ptr<const Model> model;
  const OwnerId owner = owner_of(layout, version);
  const auto open_it = [&] {
    set_thread_budget(available_cores());
    model = open(layout, version, owner);
  };
  if (nice > 0) {
    run_with_nice(nice, open_it);
  } else {
    open_it();  // at startup this is the main thread, the only one whose heap malloc_trim() can shrink at its top
  }

  const MemoryOwnerScope owner_scope(owner);
  ModelVersion::Options options = options_for(config, model->signature());
  options.warmup = make_warmup(model->signature(), config, layout.name);
  options.warmup_nice = nice;
  if (config.has_response_cache && !settings_.cache) {
    log(LogLevel::kWarning, "response_cache not used: the server has no cache", {{"model", layout.name}});
  }
  const std::shared_ptr<ModelMetrics> metrics = metrics_.share(layout.name, std::to_string(version.number));
  options.metrics_owner = metrics;
  const auto made = std::make_shared<ModelVersion>(layout.name, version.number, std::move(model), config,
                                                   std::move(options), *metrics);
  if (const PrecisionChoice& chosen = made->precision(); !chosen.name.empty()) {
    metrics->set_precision(chosen.name);
    log(LogLevel::kInfo, "precision chosen",
        {{"model", layout.name},
         {"version", std::to_string(version.number)},
         {"precision", chosen.name},
         {"reason", chosen.reason}});
  }
  metrics_.watch_plans(made->name(), made->version(), [weak = std::weak_ptr<ModelVersion>(made)] {
    const std::shared_ptr<ModelVersion> alive = weak.lock();
    return alive ? alive->plan_counts() : PlanCounts();
  });
  return made;
}

LoadedVersion VersionLoader::load(const ModelLayout& model, const ModelLayout::Version& version, bool is_reload) {
  const Clock& clock = Clock::system();
  const int64_t start_ns = clock.now_ns();
  LoadedVersion loaded;
  const LoadLimit limit(owner_of(model, version), settings_.memory_limit_bytes, version.file_bytes());
  try {
    if (!version.error.empty()) throw Error(ErrorCode::kNotFound, version.error);
    loaded.handle = make(model, version, is_reload ? settings_.reload_nice : 0);
    loaded.file = version.file;
    loaded.file_bytes = version.file_bytes();
    loaded.reason = warning_text(*loaded.handle, model);
  } catch (const std::exception& error) {
    if (limit.is_why(error)) {
      fail(ErrorCode::kResourceExhausted, "model '", model.name, "' takes more than ", limit.to_string(), ": ",
           error.what());
    }
    loaded.handle = nullptr;
    loaded.reason = to_valid_utf8(why_not_loaded(error));
    loaded.may_load_later = !model.config.is_ensemble() && is_retryable(error);
  }
  metrics_.count_load(model.name, loaded.handle != nullptr);
  const double seconds = static_cast<double>(clock.now_ns() - start_ns) * 1e-9;
  if (loaded.handle) {
    metrics_.model(model.name, std::to_string(version.number)).set_load_seconds(seconds);
    log(LogLevel::kInfo, "model loaded",
        {{"model", model.name}, {"version", std::to_string(version.number)}, {"seconds", seconds}});
  } else {
    log(LogLevel::kError, "model cannot be served",
        {{"model", model.name}, {"version", std::to_string(version.number)}, {"reason", loaded.reason}});
  }
  return loaded;
}

}  // namespace tensord::server
