#include "server/repository/repository.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <thread>

#include "core/base/log.h"
#include "core/base/parallel.h"

namespace tensord::server {
namespace {

// As strtoll would read all of it, at least 0; -1 when it is no version.
int64_t parse_version(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? number : -1;
}

[[noreturn]] void fail_not_ready(const std::string& name, int64_t version, ModelState state,
                                 const std::string& reason) {
  fail(ErrorCode::kUnavailable, "Request for unknown model: '", name, "' version ", version, " is not at ready state",
       reason.empty() ? concat(": ", to_string(state)) : concat(": ", reason));
}

}  // namespace

const char* to_string(ModelState state) {
  switch (state) {
    case ModelState::kLoading: return "LOADING";
    case ModelState::kReady: return "READY";
    case ModelState::kUnavailable: return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

Repository::Repository(Options options, ModelFactory factory, Metrics& metrics)
    : options_(std::move(options)), factory_(std::move(factory)), metrics_(metrics), cores_(options_.cores) {}

Repository::~Repository() = default;

void Repository::add_entries(const std::vector<ModelLayout>& layouts) {
  const std::unique_lock lock(mutex_);
  for (const ModelLayout& layout : layouts) {
    Entry& entry = models_[layout.name];
    entry.error = layout.error;
    entry.root = layout.root.string();
    for (const auto& version : layout.versions) entry.versions[version.number];
    if (!layout.error.empty()) {
      log(LogLevel::kError, "model cannot be served", {{"model", layout.name}, {"reason", layout.error}});
    } else if (layout.versions.empty()) {
      log(LogLevel::kWarning, "model has no versions", {{"model", layout.name}});
    }
  }
}

void Repository::load_all() {
  std::vector<ModelLayout> layouts = scan_repositories(options_.roots);
  if (!options_.only.empty()) {
    std::erase_if(layouts, [&](const ModelLayout& layout) {
      return std::find(options_.only.begin(), options_.only.end(), layout.name) == options_.only.end();
    });
    for (const std::string& name : options_.only) {
      if (std::any_of(layouts.begin(), layouts.end(), [&](const auto& layout) { return layout.name == name; }))
        continue;
      layouts.emplace_back();
      layouts.back().name = name;
      layouts.back().error = concat("model '", name, "' of --load-model is not in the repository");
    }
  }
  add_entries(layouts);

  std::vector<Job> jobs;
  for (const ModelLayout& layout : layouts) {
    if (!layout.error.empty()) continue;
    for (const auto& version : layout.versions) jobs.push_back({layout, version});
  }
  std::atomic<size_t> next{0};
  const auto load_some = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) load_version(jobs[i]);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options_.load_threads && static_cast<size_t>(i) < jobs.size(); ++i)
    threads.emplace_back(load_some);
  load_some();
  for (std::thread& thread : threads) thread.join();
  malloc_trim(0);  // sources, pickles and graphs are gone
  const std::unique_lock lock(mutex_);
  is_loaded_ = true;
}

std::shared_ptr<ModelVersion> Repository::make_version(const Job& job) {
  const ModelConfig& config = job.model.config;
  const std::string owner = concat(job.model.name, "/", job.version.number);
  const MemoryOwnerScope owner_scope(memory_owner(owner));
  std::unique_ptr<const Model> model = factory_(job.version.file.string(), config);

  ModelVersion::Options options;
  options.workers = config.workers > 0 ? config.workers : options_.workers;
  options.threads_per_worker = config.threads > 0                ? config.threads
                               : options_.threads_per_worker > 0 ? options_.threads_per_worker
                                                                 : std::max(1, available_cores() / options.workers);
  if (options_.cores > 0) options.cores = &cores_;
  options.warmup = make_warmup(model->signature(), config, job.model.name);
  options.max_queue_size = options_.max_queue_size;
  options.directory = this;
  ModelMetrics& metrics = metrics_.model(job.model.name, std::to_string(job.version.number));
  const auto version = std::make_shared<ModelVersion>(job.model.name, job.version.number, std::move(model), config,
                                                      std::move(options), metrics);
  metrics_.watch_plans(version->name(), version->version(), [weak = std::weak_ptr<ModelVersion>(version)] {
    const std::shared_ptr<ModelVersion> alive = weak.lock();
    return alive ? alive->plan_counts() : PlanCounts();
  });
  return version;
}

void Repository::load_version(const Job& job) { set_state(job, try_load(job)); }

Repository::VersionEntry Repository::try_load(const Job& job) {
  const Clock& clock = Clock::system();
  const int64_t start_ns = clock.now_ns();
  VersionEntry entry;
  try {
    if (!job.version.error.empty()) throw Error(ErrorCode::kNotFound, job.version.error);
    entry.handle = make_version(job);
    entry.file = job.version.file;
    entry.state = ModelState::kReady;
  } catch (const std::exception& error) {
    entry.state = ModelState::kUnavailable;
    entry.reason = error.what();
  }
  const double seconds = static_cast<double>(clock.now_ns() - start_ns) * 1e-9;
  ModelMetrics& metrics = metrics_.model(job.model.name, std::to_string(job.version.number));
  metrics.set_load_seconds(seconds);
  metrics.set_ready(entry.handle != nullptr);
  if (entry.handle) {
    log(LogLevel::kInfo, "model loaded",
        {{"model", job.model.name}, {"version", job.version.number}, {"seconds", seconds}});
  } else {
    log(LogLevel::kError, "model cannot be served",
        {{"model", job.model.name}, {"version", job.version.number}, {"reason", entry.reason}});
  }
  return entry;
}

void Repository::set_state(const Job& job, VersionEntry entry) {
  const std::unique_lock lock(mutex_);
  std::swap(models_[job.model.name].versions[job.version.number], entry);
}

std::shared_ptr<ModelVersion> Repository::find(const std::string& name, const std::string& version_text) const {
  const int64_t version = version_text.empty() ? -1 : parse_version(version_text);
  check(version_text.empty() || version >= 0, "failed to get model version from specified version string '",
        version_text, "' (an integral value greater than or equal to 0 is expected)");
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) {
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
  }
  const std::string& error = model->second.error;
  const auto& versions = model->second.versions;
  if (!error.empty()) {
    fail(ErrorCode::kUnavailable, "Request for unknown model: '", name, "' is not at ready state: ", error);
  }
  if (versions.empty()) {
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' has no available versions");
  }
  if (version >= 0) {
    const auto found = versions.find(version);
    if (found == versions.end()) {
      fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' version ", version, " is not found");
    }
    const VersionEntry& entry = found->second;
    if (!entry.handle) fail_not_ready(name, version, entry.state, entry.reason);
    return entry.handle;
  }
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->second.handle) return it->second.handle;
  }
  const auto& [latest, entry] = *versions.rbegin();
  fail_not_ready(name, latest, entry.state, entry.reason);
}

bool Repository::is_ready(const std::string& name, const std::string& version) const {
  try {
    return find(name, version) != nullptr;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    return false;
  }
}

bool Repository::has_model(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  return models_.contains(name);
}

std::vector<std::string> Repository::ready_versions(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> out;
  const auto model = models_.find(name);
  if (model == models_.end()) return out;
  for (const auto& [number, entry] : model->second.versions) {
    if (entry.handle) out.push_back(std::to_string(number));
  }
  return out;
}

bool Repository::is_loaded() const {
  const std::shared_lock lock(mutex_);
  return is_loaded_;
}

bool Repository::is_all_ready() const {
  const std::shared_lock lock(mutex_);
  return is_loaded_ && std::all_of(models_.begin(), models_.end(), [](const auto& model) {
           const Entry& entry = model.second;
           return entry.error.empty() &&
                  std::all_of(entry.versions.begin(), entry.versions.end(),
                              [](const auto& version) { return version.second.state == ModelState::kReady; });
         });
}

std::vector<Repository::IndexEntry> Repository::index() const {
  const std::shared_lock lock(mutex_);
  std::vector<IndexEntry> out;
  for (const auto& [name, entry] : models_) {
    if (entry.versions.empty()) out.push_back({name, "", ModelState::kUnavailable, entry.error});
    for (const auto& [number, version] : entry.versions) {
      out.push_back({name, std::to_string(number), version.state, version.reason});
    }
  }
  return out;
}

}  // namespace tensord::server
