#include "server/repository/model_entry.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/utf8.h"
#include "core/tensor/memory/accounts.h"
#include "server/repository/version_labels.h"

namespace tensord::server {

uint64_t LoadedVersion::bytes() const { return handle ? file_bytes + bytes_of_owner(handle->owner()) : 0; }

std::string LoadPlan::stamp_of(int64_t version) const {
  const auto found = stamp.versions.find(version);
  return found == stamp.versions.end() ? stamp.shared : stamp.shared + found->second;
}

bool ModelEntry::is_served() const {
  return std::any_of(versions.begin(), versions.end(),
                     [](const auto& version) { return serves(version.second.state); });
}

bool ModelEntry::is_unloaded() const {
  return error.empty() && has_versions() && std::all_of(versions.begin(), versions.end(), [](const auto& version) {
           const VersionState state = version.second.state;
           return state == VersionState::kUnloading || state == VersionState::kUnloaded;
         });
}

bool ModelEntry::has_versions() const {
  return std::any_of(versions.begin(), versions.end(), [](const auto& version) { return version.second.belongs(); });
}

bool ModelEntry::runs(const std::string& step) const {
  const auto& steps = plan.layout.config.ensemble_steps;
  return std::any_of(steps.begin(), steps.end(), [&](const auto& item) { return item.model == step; });
}

uint64_t ModelEntry::bytes() const {
  uint64_t total = 0;
  for (const auto& [number, version] : versions) total += version.served.bytes();
  return total;
}

bool ModelEntry::serves_all_of(const LoadPlan& wanted) const {
  const auto belonging =
      std::count_if(versions.begin(), versions.end(), [](const auto& version) { return version.second.belongs(); });
  const auto& list = wanted.layout.versions;
  return static_cast<size_t>(belonging) == list.size() && std::all_of(list.begin(), list.end(), [&](const auto& item) {
           const auto found = versions.find(item.number);
           return found != versions.end() && found->second.served.handle &&
                  found->second.served.stamp == wanted.stamp_of(item.number);
         });
}

std::shared_ptr<ModelVersion> ModelEntry::handle_of(int64_t version) const {
  const auto found = versions.find(version);
  return found == versions.end() ? nullptr : found->second.served.handle;
}

namespace {

VersionState state_of(const std::map<int64_t, VersionEntry>& versions, int64_t version) {
  const auto found = versions.find(version);
  return found == versions.end() ? VersionState::kUnknown : found->second.state;
}

}  // namespace

void ModelEntry::move(int64_t version, VersionEvent event) {
  const VersionState next = next_state(state_of(versions, version), event);
  if (next != VersionState::kUnknown) {
    versions[version].state = next;
  } else {
    versions.erase(version);
  }
}

void ModelEntry::expect(const LoadPlan& wanted) {
  if (is_served()) return;
  for (const auto& version : wanted.layout.versions) {
    if (!versions.contains(version.number)) move(version.number, VersionEvent::kLoad);
  }
}

std::vector<const ModelLayout::Version*> ModelEntry::begin(const LoadPlan& wanted) {
  seen = wanted.stamp;
  const bool was_served = is_served();
  if (!was_served) error.clear();
  // Results of the previous load are obsolete.
  std::vector<int64_t> refused;
  for (const auto& [number, version] : versions) {
    if (version.state == VersionState::kRefused) refused.push_back(number);
  }
  for (const int64_t number : refused) move(number, VersionEvent::kDrop);
  std::vector<const ModelLayout::Version*> out;
  for (const ModelLayout::Version& version : wanted.layout.versions) {
    const auto found = versions.find(version.number);
    const bool is_same = found != versions.end() && found->second.served.handle && !wanted.is_forced &&
                         wanted.forced_version != version.number &&
                         found->second.served.stamp == wanted.stamp_of(version.number);
    if (is_same) continue;
    out.push_back(&version);
    move(version.number, was_served ? VersionEvent::kLoadBeside : VersionEvent::kLoad);
    VersionEntry& entry = versions[version.number];
    if (!serves(entry.state) && entry.state != VersionState::kRetrying) entry.served = {};
  }
  return out;
}

std::vector<std::shared_ptr<ModelVersion>> ModelEntry::commit(const LoadPlan& wanted, LoadedVersions loaded) {
  std::vector<std::shared_ptr<ModelVersion>> retired;
  const bool was_served = is_served();
  const auto& list = wanted.layout.versions;
  const auto newest = list.empty() ? loaded.end() : loaded.find(list.back().number);
  const bool stays = was_served && newest != loaded.end() && !newest->second.handle;
  for (auto& [number, made] : loaded) {
    if (!made.handle) {
      move(number, was_served ? VersionEvent::kFailBeside : VersionEvent::kFail);
      if (made.may_load_later) seen = {};  // makes the next scan try again
      VersionEntry& entry = versions[number];
      if (serves(entry.state)) {
        entry.served.reason = concat("the last change of its files could not be served: ", made.reason);
      } else {
        entry.served = std::move(made);
      }
      continue;
    }
    move(number, stays ? VersionEvent::kStayOut : VersionEvent::kTakeOver);
    if (stays) {
      retired.push_back(std::move(made.handle));
      continue;
    }
    VersionEntry& entry = versions[number];
    if (entry.served.handle) retired.push_back(std::move(entry.served.handle));
    entry.served = std::move(made);
  }
  if (stays) return retired;
  std::vector<int64_t> dropped;
  for (auto& [number, version] : versions) {
    const bool is_wanted =
        std::any_of(list.begin(), list.end(), [number = number](const auto& item) { return item.number == number; });
    if (is_wanted) continue;
    dropped.push_back(number);
    if (!version.served.handle) continue;
    ended.insert(number);
    retired.push_back(std::move(version.served.handle));
  }
  for (const int64_t number : dropped) move(number, VersionEvent::kDrop);
  for (const auto& [number, version] : versions) {
    if (version.belongs()) ended.erase(number);
  }
  adopt(wanted);
  ++revision;
  return retired;
}

void ModelEntry::adopt(const LoadPlan& new_plan) {
  plan = new_plan;
  error.clear();
  is_withheld = false;
  waits_for_step = false;
  retry_ns = 0;
  used_ns = Clock::system().now_ns();
  if (plan.override_folders.empty()) root = plan.layout.root.string();
  // Labels that an operator changed stay until the configuration's labels change.
  const auto& configured = plan.layout.config.version_labels;
  if (configured == config_labels) return;
  config_labels = configured;
  labels = configured_labels(configured);
}

bool ModelEntry::fail(const std::string& reason, const std::string& in_root, const ModelStamp& stamp) {
  seen = stamp;
  if (is_served()) return false;
  error = to_valid_utf8(reason);
  root = in_root;
  std::vector<int64_t> numbers;
  for (const auto& [number, version] : versions) numbers.push_back(number);
  for (const int64_t number : numbers) move(number, VersionEvent::kDrop);
  return true;
}

void ModelEntry::forget_failed(int64_t version) {
  const VersionState state = state_of(versions, version);
  const bool may_stay = state == VersionState::kUnknown || is_served();
  if (state == VersionState::kRefused || !may_stay) move(version, VersionEvent::kDrop);
}

std::map<int64_t, std::shared_ptr<ModelVersion>> ModelEntry::unload(const std::string& reason, bool withhold) {
  error.clear();
  plan.override_folders.clear();
  plan.override_config.reset();
  is_withheld = withhold;
  is_loaded_along = false;
  waits_for_step = false;
  std::map<int64_t, std::shared_ptr<ModelVersion>> out;
  std::vector<int64_t> numbers;
  for (auto& [number, version] : versions) {
    numbers.push_back(number);
    version.served.reason = version.served.handle ? "" : reason;
    if (version.served.handle) out.emplace(number, std::move(version.served.handle));
    version.served.handle = nullptr;
  }
  for (const int64_t number : numbers) move(number, VersionEvent::kUnload);
  return out;
}

void ModelEntry::record_gone(int64_t version, const std::string& reason) {
  if (state_of(versions, version) != VersionState::kUnloading) return;
  move(version, VersionEvent::kGone);
  versions[version].served.reason = reason;
}

}  // namespace tensord::server
