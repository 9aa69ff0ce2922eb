#include "server/repository/model_table.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/nearest.h"

namespace tensord::server {
namespace {

// Suggestion such as "; did you mean 'bert'?"; the rest of the message is Triton's.
template <class Models>
std::string near_name(const Models& models, const std::string& wanted) {
  constexpr size_t kMaxNames = 10'000;
  std::vector<std::string> names;
  for (const auto& [name, entry] : models) {
    if (names.size() < kMaxNames) names.push_back(name);
  }
  const std::string near = nearest(wanted, names);
  return near.empty() ? near : "; did you mean '" + near + "'?";
}

// Parses a non-negative integer; returns -1 if the string is not a version.
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

std::vector<std::string> versions_of(const ModelEntry& entry) {
  std::vector<std::string> out;
  for (const auto& [number, version] : entry.versions) {
    if (version.belongs()) out.push_back(std::to_string(number));
  }
  return out;
}

// Returns that version. Throws Error.
std::shared_ptr<ModelVersion> find_version(const std::string& name, const ModelEntry& entry, int64_t version) {
  const auto found = entry.versions.find(version);
  if (found == entry.versions.end() || !found->second.belongs()) {
    if (entry.ended.contains(version)) fail_not_ready(name, version, ModelState::kUnavailable, kUnloadedReason);
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' version ", version, " is not found",
         right_names(std::to_string(version), versions_of(entry)));
  }
  const VersionEntry& there = found->second;
  if (!there.served.handle) fail_not_ready(name, version, shown_as(there.state), there.served.reason);
  return there.served.handle;
}

// Returns the newest ready version. Throws Error.
std::shared_ptr<ModelVersion> find_newest(const std::string& name, const ModelEntry& entry) {
  const auto& versions = entry.versions;
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->second.served.handle) return it->second.served.handle;
  }
  if (!entry.has_versions() || entry.is_unloaded()) {
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' has no available versions");
  }
  const auto& [latest, there] = *versions.rbegin();
  fail_not_ready(name, latest, shown_as(there.state), there.served.reason);
}

}  // namespace

int64_t ModelTable::parse_version_or_label(const ModelEntry& entry, const std::string& text) const {
  const int64_t version = parse_version(text);
  if (version >= 0) return version;
  const auto label = entry.labels.find(text);
  return allows_labels_ && label != entry.labels.end() ? label->second : -1;
}

std::shared_ptr<ModelVersion> ModelTable::find(const std::string& name, const std::string& version_text) const {
  const auto check_version = [&](int64_t version, const std::string& hint = "") {
    check(version >= 0, "failed to get model version from specified version string '", version_text,
          "' (an integral value greater than or equal to 0 is expected)", hint);
  };
  const ReaderLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) {
    if (!version_text.empty()) check_version(parse_version(version_text));
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found", near_name(models_, name));
  }
  const ModelEntry& entry = model->second;
  const int64_t version = version_text.empty() ? -1 : parse_version_or_label(entry, version_text);
  if (!version_text.empty() && version < 0) {
    std::vector<std::string> names = versions_of(entry);
    const bool has_labels = allows_labels_ && !entry.labels.empty();
    for (const auto& [label, of] : entry.labels) {
      if (has_labels) names.push_back(label);
    }
    check_version(version, concat(has_labels ? ", or a label" : "", right_names(version_text, names)));
  }
  if (notes_use_) entry.used_ns.store(Clock::system().now_ns(), std::memory_order_relaxed);
  if (!entry.error.empty()) {
    fail(ErrorCode::kUnavailable, "Request for unknown model: '", name, "' ",
         version_text.empty() ? "has no available versions: " : "is not at ready state: ", entry.error);
  }
  return version >= 0 ? find_version(name, entry, version) : find_newest(name, entry);
}

std::vector<std::string> ModelTable::ready_versions(const std::string& name) const {
  return read(name, [](const ModelEntry& entry) {
    std::vector<std::string> out;
    for (const auto& [number, version] : entry.versions) {
      if (version.served.handle) out.push_back(std::to_string(number));
    }
    return out;
  });
}

bool ModelTable::is_all_ready() const {
  const auto is_fine = [](const auto& model) {
    const ModelEntry& entry = model.second;
    if (!entry.is_required || entry.is_unloaded()) return true;
    return entry.error.empty() && std::all_of(entry.versions.begin(), entry.versions.end(), [](const auto& version) {
             return serves(version.second.state) || !version.second.belongs();
           });
  };
  return read([&](const Models& models) { return std::all_of(models.begin(), models.end(), is_fine); });
}

bool ModelTable::has(const std::string& name) const {
  return read(name, [](const ModelEntry&) { return true; });
}

bool ModelTable::is_served(const std::string& name) const {
  return read(name, [](const ModelEntry& entry) { return entry.is_served(); });
}

std::optional<LoadPlan> ModelTable::plan_of_served(const std::string& name) const {
  return read(name, [](const ModelEntry& entry) {
    return entry.is_served() ? std::optional<LoadPlan>(entry.plan) : std::nullopt;
  });
}

bool ModelTable::is_owner_served(OwnerId owner) const {
  return read([owner](const Models& models) {
    return std::any_of(models.begin(), models.end(), [owner](const auto& model) {
      const auto& versions = model.second.versions;
      return std::any_of(versions.begin(), versions.end(), [owner](const auto& version) {
        return version.second.served.handle && version.second.served.handle->owner() == owner;
      });
    });
  });
}

namespace {

// Whether the index lists the model.
bool is_known(const ModelEntry& entry) { return entry.has_versions() || !entry.error.empty(); }

}  // namespace

std::vector<ModelTable::IndexEntry> ModelTable::index(
    const std::map<std::string, std::vector<std::string>>& on_disk) const {
  std::set<std::string> names;
  for (const auto& [name, roots] : on_disk) names.insert(name);
  const ReaderLock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    if (is_known(entry) && !entry.is_unloaded()) names.insert(name);
  }
  std::vector<IndexEntry> out;
  for (const std::string& name : names) {
    const auto model = models_.find(name);
    if (model == models_.end() || !is_known(model->second)) {
      if (on_disk.at(name).size() > 1) {
        out.push_back({name, "", ModelState::kUnavailable, kTwoRepositories});
      } else {
        out.push_back({name, "", std::nullopt, ""});
      }
      continue;
    }
    const ModelEntry& entry = model->second;
    if (!entry.has_versions()) out.push_back({name, "", ModelState::kUnavailable, entry.error});
    for (const auto& [number, version] : entry.versions) {
      out.push_back({name, std::to_string(number), shown_as(version.state), version.served.reason});
    }
  }
  return out;
}

void ModelTable::set_labels(const std::string& name, const std::map<std::string, int64_t>& labels) {
  const WriterLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) {
    fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found", near_name(models_, name));
  }
  ModelEntry& entry = model->second;
  for (const auto& [label, version] : labels) {
    if (version > 0 && !entry.handle_of(version)) {
      fail(ErrorCode::kNotFound, "version label '", label, "': model '", name, "' does not serve version ", version);
    }
  }
  for (const auto& [label, version] : labels) {
    if (version > 0) {
      entry.labels[label] = version;
    } else {
      entry.labels.erase(label);
    }
  }
}

}  // namespace tensord::server
