#include "server/repository/repository.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>

#include "core/base/clock.h"
#include "core/base/error.h"

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

ControlMode parse_control_mode(const std::string& text) {
  if (text == "none") return ControlMode::kNone;
  if (text == "poll") return ControlMode::kPoll;
  check(text == "explicit", "a model control mode is none, poll or explicit, got '", text, "'");
  return ControlMode::kExplicit;
}

Repository::Repository(Options options, ModelFactory factory, Metrics& metrics)
    : options_(std::move(options)),
      factory_(std::move(factory)),
      metrics_(metrics),
      cores_(options_.cores),
      overrides_(options_.override_limit_bytes),
      tickets_(options_.load_timeout_ns) {
  if (options_.loads_on_demand) {
    demand_ = std::make_unique<DemandLoads>(options_.load_threads, options_.max_queue_size,
                                            [this](const std::string& name) { load_demanded(name); });
  }
}

Repository::~Repository() { stop(); }

void Repository::stop() {
  tickets_.cancel_all();
  poller_.reset();
  if (demand_) demand_->stop();
  // The process may end without destructors.
  overrides_.close();
}

int64_t Repository::parse_version_or_label(const ModelEntry& entry, const std::string& text) const {
  const int64_t version = parse_version(text);
  if (version >= 0) return version;
  const auto label = entry.labels.find(text);
  return options_.allows_labels && label != entry.labels.end() ? label->second : -1;
}

std::shared_ptr<ModelVersion> Repository::find(const std::string& name, const std::string& version_text) const {
  const auto check_version = [&](int64_t version) {
    check(version >= 0, "failed to get model version from specified version string '", version_text,
          "' (an integral value greater than or equal to 0 is expected)");
  };
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) {
    if (!version_text.empty()) check_version(parse_version(version_text));
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
  }
  const ModelEntry& entry = model->second;
  const auto& versions = entry.versions;
  const int64_t version = version_text.empty() ? -1 : parse_version_or_label(entry, version_text);
  if (!version_text.empty()) check_version(version);
  if (options_.memory_limit_bytes > 0) entry.used_ns.store(Clock::system().now_ns(), std::memory_order_relaxed);
  if (!entry.error.empty()) {
    fail(ErrorCode::kUnavailable, "Request for unknown model: '", name, "' ",
         version_text.empty() ? "has no available versions: " : "is not at ready state: ", entry.error);
  }
  if (version >= 0) {
    const auto found = versions.find(version);
    if (found == versions.end()) {
      if (entry.ended.contains(version)) fail_not_ready(name, version, ModelState::kUnavailable, kUnloadedReason);
      fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' version ", version, " is not found");
    }
    if (!found->second.handle) fail_not_ready(name, version, found->second.state, found->second.reason);
    return found->second.handle;
  }
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->second.handle) return it->second.handle;
  }
  if (versions.empty() || entry.is_unloaded()) {
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' has no available versions");
  }
  const auto& [latest, latest_entry] = *versions.rbegin();
  fail_not_ready(name, latest, latest_entry.state, latest_entry.reason);
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
  const auto model = models_.find(name);
  return model != models_.end() && !model->second.is_unloaded();
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
  const auto is_fine = [](const auto& model) {
    const ModelEntry& entry = model.second;
    if (!entry.is_required || entry.is_unloaded()) return true;
    return entry.error.empty() && std::all_of(entry.versions.begin(), entry.versions.end(), [](const auto& version) {
             return version.second.state == ModelState::kReady;
           });
  };
  const std::shared_lock lock(mutex_);
  return is_loaded_ && std::all_of(models_.begin(), models_.end(), is_fine);
}

std::vector<Repository::IndexEntry> Repository::index() const {
  std::map<std::string, std::vector<std::string>> on_disk;
  try {
    on_disk = list_models(options_.roots);
  } catch (const Error&) {
    // A repository that is gone has no models that are not served.
  }
  std::set<std::string> names;
  for (const auto& [name, roots] : on_disk) names.insert(name);
  const std::shared_lock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    if (!entry.is_unloaded()) names.insert(name);
  }
  std::vector<IndexEntry> out;
  for (const std::string& name : names) {
    const auto model = models_.find(name);
    const bool is_known = model != models_.end() && (!model->second.versions.empty() || !model->second.error.empty());
    if (!is_known) {
      const auto found = on_disk.find(name);
      if (found != on_disk.end() && found->second.size() > 1) {
        out.push_back({name, "", ModelState::kUnavailable, kTwoRepositories});
      } else {
        out.push_back({name, "", std::nullopt, ""});
      }
      continue;
    }
    const ModelEntry& entry = model->second;
    if (entry.versions.empty()) out.push_back({name, "", ModelState::kUnavailable, entry.error});
    for (const auto& [number, version] : entry.versions) {
      out.push_back({name, std::to_string(number), version.state, version.reason});
    }
    for (const auto& [number, update] : entry.updates) {
      if (!entry.versions.contains(number)) out.push_back({name, std::to_string(number), update.state, update.reason});
    }
  }
  return out;
}

std::map<std::string, int64_t> Repository::labels(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  return model == models_.end() ? std::map<std::string, int64_t>() : model->second.labels;
}

}  // namespace tensord::server
