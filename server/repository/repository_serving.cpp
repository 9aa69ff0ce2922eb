// How versions are made, take over from those before them, and end.
#include <algorithm>
#include <optional>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/delay_point.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/base/thread_priority.h"
#include "core/base/utf8.h"
#include "server/executor/paths/ensemble_plan.h"
#include "server/repository/archive_copy.h"
#include "server/repository/repository.h"
#include "server/repository/version_labels.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// The text with another name of a file in it.
std::string renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What is to be said of a version that serves, all of it in one text.
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
    return concat("the load was given up: ", given_up.what());
  }
}

// Opens a model by copies of its files that nobody can write to.
std::unique_ptr<const Model> open_copy(const ModelFactory& factory, const fs::path& file, const ModelConfig& config) {
  const ArchiveCopy copy(file);
  std::optional<ArchiveCopy> weights;
  ModelConfig named = config;  // the copy's path has no name
  named.default_model_filename = file.filename().string();
  if (!config.weights_file.empty()) named.weights_file = weights.emplace(config.weights_file).path();
  try {
    return factory(copy.path(), named);
  } catch (const Error& error) {
    const std::string text = renamed(error.what(), copy.path(), file.string());
    throw Error(error.code(), weights ? renamed(text, weights->path(), config.weights_file) : text);
  }
}

}  // namespace

bool Repository::is_served(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  return model != models_.end() && model->second.is_served();
}

std::unique_ptr<const Model> Repository::open_model(const Job& job, OwnerId owner) {
  ModelConfig config = job.model.config;
  config.weights_file = job.version.weights.string();
  const MemoryOwnerScope owner_scope(owner);
  if (config.is_ensemble()) return make_ensemble_model(job.model.name, config, *this);
  if (options_.copies_archives) return open_copy(factory_, job.version.file, config);
  return factory_(job.version.file.string(), config);
}

std::shared_ptr<ModelVersion> Repository::make_version(const Job& job) {
  const ModelConfig& config = job.model.config;
  // While another version serves nobody waits for this one, and requests go first.
  const int nice = is_served(job.model.name) ? options_.reload_nice : 0;
  std::unique_ptr<const Model> model;
  const OwnerId owner = memory_owner(concat(job.model.name, "/", job.version.number));
  const auto open = [&] {
    set_thread_budget(available_cores());
    model = open_model(job, owner);
  };
  if (nice > 0) {
    run_with_nice(nice, open);
  } else {
    open();  // at the start that is the main thread, the only one whose heap malloc_trim also shortens at its end
  }

  const MemoryOwnerScope owner_scope(owner);
  ModelVersion::Options options;
  options.workers = config.workers > 0 ? config.workers : options_.workers;
  options.threads_per_worker = config.threads > 0                ? config.threads
                               : options_.threads_per_worker > 0 ? options_.threads_per_worker
                                                                 : std::max(1, available_cores() / options.workers);
  options.cores = cores();
  options.warmup = make_warmup(model->signature(), config, job.model.name);
  options.max_queue_size = options_.max_queue_size;
  options.directory = this;
  options.cache = options_.cache;
  options.warmup_nice = nice;
  options.rate_limiter = options_.rate_limiter;
  options.pool = &pool_;
  if (config.has_response_cache && !options_.cache) {
    log(LogLevel::kWarning, "response_cache not used: the server has no cache", {{"model", job.model.name}});
  }
  const std::shared_ptr<ModelMetrics> metrics = metrics_.share(job.model.name, std::to_string(job.version.number));
  options.metrics_owner = metrics;
  const auto version = std::make_shared<ModelVersion>(job.model.name, job.version.number, std::move(model), config,
                                                      std::move(options), *metrics);
  metrics_.watch_plans(version->name(), version->version(), [weak = std::weak_ptr<ModelVersion>(version)] {
    const std::shared_ptr<ModelVersion> alive = weak.lock();
    return alive ? alive->plan_counts() : PlanCounts();
  });
  return version;
}

VersionEntry Repository::try_load(const Job& job) {
  const Clock& clock = Clock::system();
  const int64_t start_ns = clock.now_ns();
  VersionEntry entry;
  try {
    if (!job.version.error.empty()) throw Error(ErrorCode::kNotFound, job.version.error);
    entry.handle = make_version(job);
    entry.file = job.version.file;
    std::error_code error;
    const uint64_t size = job.model.config.is_ensemble() ? 0 : fs::file_size(job.version.file, error);
    entry.file_bytes = error ? 0 : size;
    entry.state = ModelState::kReady;
    entry.reason = warning_text(*entry.handle, job.model);
  } catch (const std::exception& error) {
    entry.state = ModelState::kUnavailable;
    entry.reason = to_valid_utf8(why_not_loaded(error));
  }
  metrics_.count_load(job.model.name, entry.handle != nullptr);
  const double seconds = static_cast<double>(clock.now_ns() - start_ns) * 1e-9;
  if (entry.handle) {
    metrics_.model(job.model.name, std::to_string(job.version.number)).set_load_seconds(seconds);
    log(LogLevel::kInfo, "model loaded",
        {{"model", job.model.name}, {"version", job.version.number}, {"seconds", seconds}});
  } else {
    log(LogLevel::kError, "model cannot be served",
        {{"model", job.model.name}, {"version", job.version.number}, {"reason", entry.reason}});
  }
  return entry;
}

Repository::Failures Repository::serve(const LoadPlan& plan) {
  Failures failures;
  std::map<int64_t, VersionEntry> loaded;
  const std::vector<const ModelLayout::Version*> wanted = begin_loading(plan);
  try {
    make_room(plan, wanted);
    for (const ModelLayout::Version* version : wanted) {
      VersionEntry entry = try_load({plan.layout, *version});
      entry.stamp = plan.stamp_of(version->number);
      if (!entry.handle) failures[version->number] = entry.reason;
      loaded[version->number] = std::move(entry);
    }
    check_room(plan, loaded);
  } catch (const std::exception& error) {
    // Only for want of memory: the model as a whole cannot be loaded.
    for (const ModelLayout::Version* version : wanted) failures[version->number] = to_valid_utf8(error.what());
    for (auto& [number, entry] : loaded) entry.handle.reset();
    for (const auto& [number, reason] : failures) {
      loaded[number].state = ModelState::kUnavailable;
      loaded[number].reason = reason;
    }
    commit(plan, std::move(loaded), failures);
    throw;
  }
  commit(plan, std::move(loaded), failures);
  return failures;
}

std::vector<const ModelLayout::Version*> Repository::begin_loading(const LoadPlan& plan) {
  std::vector<const ModelLayout::Version*> wanted;
  const std::unique_lock lock(mutex_);
  ModelEntry& entry = models_[plan.layout.name];
  entry.seen = plan.stamp;
  entry.tried_steps.clear();
  entry.planned.clear();
  for (const EnsembleStepConfig& step : plan.layout.config.ensemble_steps) {
    entry.tried_steps.insert(step.model);
    const auto model = models_.find(step.model);
    entry.planned[step.model] = model == models_.end() ? 0 : model->second.revision;
  }
  entry.updates.clear();
  const bool is_served = entry.is_served();
  if (!is_served) entry.error.clear();
  for (const ModelLayout::Version& version : plan.layout.versions) {
    const auto found = entry.versions.find(version.number);
    const bool is_same = found != entry.versions.end() && found->second.handle && !plan.is_forced &&
                         plan.forced_version != version.number && found->second.stamp == plan.stamp_of(version.number);
    if (is_same) continue;
    wanted.push_back(&version);
    if (is_served) {
      entry.updates[version.number] = {};
    } else {
      entry.versions[version.number] = {};
    }
  }
  return wanted;
}

void Repository::commit(const LoadPlan& plan, std::map<int64_t, VersionEntry> loaded, const Failures& failures) {
  const auto& wanted = plan.layout.versions;
  TENSORD_DELAY("repository.commit");
  std::vector<std::shared_ptr<ModelVersion>> retired;
  {
    const std::unique_lock lock(mutex_);
    ModelEntry& entry = models_[plan.layout.name];
    const bool is_served = entry.is_served();
    entry.updates.clear();
    if (is_served) {
      for (const auto& [number, reason] : failures) entry.updates[number] = {ModelState::kUnavailable, reason};
    }
    if (is_served && !wanted.empty() && failures.contains(wanted.back().number)) {
      for (auto& [number, version] : loaded) {
        if (version.handle) retired.push_back(std::move(version.handle));
      }
    } else {
      std::map<int64_t, VersionEntry> before = std::move(entry.versions);
      entry.versions.clear();
      for (const ModelLayout::Version& version : wanted) {
        const auto made = loaded.find(version.number);
        const auto old = before.find(version.number);
        const bool keeps_old = old != before.end() && old->second.handle;
        if (made != loaded.end() && (made->second.handle || (!keeps_old && !is_served))) {
          entry.versions[version.number] = std::move(made->second);
        } else if (keeps_old) {
          entry.versions[version.number] = std::move(old->second);
        }
      }
      for (auto& [number, version] : before) {
        if (!version.handle) continue;
        entry.ended.insert(number);
        retired.push_back(std::move(version.handle));
      }
      for (const auto& [number, version] : entry.versions) entry.ended.erase(number);
      adopt(plan, entry);
      ++entry.revision;
    }
  }
  TENSORD_DELAY("repository.retire");
  for (const auto& version : retired) version->metrics().set_ready(false);
  show_ready(plan.layout.name);
  for (auto& version : retired) {
    const int64_t number = std::stoll(version->version());
    retired_.add(std::move(version), [this, name = plan.layout.name, number] { forget_metrics(name, number); });
  }
}

void Repository::adopt(const LoadPlan& plan, ModelEntry& entry) {
  entry.plan = plan;
  entry.error.clear();
  entry.is_withheld = false;
  entry.waits_for_step = false;
  entry.retry_ns = 0;
  entry.used_ns = Clock::system().now_ns();
  if (plan.override_folders.empty()) entry.root = plan.layout.root.string();
  // Labels that an operator moved stay as they are until the configuration has others.
  const auto& configured = plan.layout.config.version_labels;
  if (configured == entry.config_labels) return;
  entry.config_labels = configured;
  entry.labels = configured_labels(configured);
}

void Repository::show_ready(const std::string& name) {
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  for (const auto& [number, version] : model->second.versions) {
    if (!version.handle && version.reason.starts_with(kUnloadedReason)) continue;
    metrics_.model(name, std::to_string(number)).set_ready(version.handle != nullptr);
  }
}

void Repository::set_error(const std::string& name, const std::string& root, const ModelStamp& stamp,
                           const std::string& error) {
  log(LogLevel::kError, "model cannot be served", {{"model", name}, {"reason", error}});
  metrics_.count_load(name, false);
  const std::unique_lock lock(mutex_);
  ModelEntry& entry = models_[name];
  entry.seen = stamp;
  // What is served goes on.
  if (entry.is_served()) return;
  entry.error = to_valid_utf8(error);
  entry.root = root;
  entry.versions.clear();
}

Repository::Unloading Repository::withdraw(const std::string& name, const std::string& reason, bool is_withheld) {
  const NameLocks::Held held = names_.hold(name);
  Unloading unloading{.name = name, .gone = {}, .owners = {}};
  std::vector<std::pair<int64_t, std::shared_ptr<ModelVersion>>> ended;
  {
    const std::unique_lock lock(mutex_);
    const auto model = models_.find(name);
    if (model == models_.end()) return unloading;
    ModelEntry& entry = model->second;
    entry.error.clear();
    entry.updates.clear();
    entry.plan.override_folders.clear();
    entry.plan.override_config.reset();
    entry.is_withheld = is_withheld;
    entry.is_loaded_along = false;
    entry.waits_for_step = false;
    for (auto& [number, version] : entry.versions) {
      version.state = version.handle ? ModelState::kUnloading : ModelState::kUnavailable;
      version.reason = version.handle ? "" : reason;
      if (version.handle) ended.emplace_back(number, std::move(version.handle));
      version.handle = nullptr;
    }
  }
  for (auto& [number, version] : ended) {
    version->metrics().set_ready(false);
    unloading.owners.push_back(version->owner());
    const auto on_gone = [this, name, reason, number = number] {
      note_unloaded(name, number, reason);
      forget_metrics(name, number);
    };
    unloading.gone.push_back(retired_.add(std::move(version), on_gone));
  }
  return unloading;
}

// Of a version that has ended, unless it is served again.
void Repository::forget_metrics(const std::string& name, int64_t version) {
  {
    const std::shared_lock lock(mutex_);
    const auto model = models_.find(name);
    if (model != models_.end()) {
      const auto found = model->second.versions.find(version);
      if (found != model->second.versions.end() && found->second.handle) return;
    }
  }
  metrics_.forget(name, std::to_string(version));
}

void Repository::note_unloaded(const std::string& name, int64_t version, const std::string& reason) {
  const std::unique_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  const auto found = model->second.versions.find(version);
  if (found == model->second.versions.end() || found->second.state != ModelState::kUnloading) return;
  found->second.state = ModelState::kUnavailable;
  found->second.reason = reason;
}

}  // namespace tensord::server
