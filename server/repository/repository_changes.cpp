// Versions that come and go while the daemon runs.
#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/repository/repository.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// A folder that is removed unless it was moved to its place.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& in) {
    std::string pattern = (in / ".new-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) fail(ErrorCode::kUnavailable, in.string(), ": no folder can be made in it");
    path_ = pattern;
    fs::permissions(path_, fs::perms(0755));
  }
  ~NewFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

int64_t largest_ready(const std::vector<std::string>& versions) {
  int64_t largest = 0;
  for (const std::string& version : versions) largest = std::max<int64_t>(largest, std::stoll(version));
  return largest;
}

}  // namespace

Repository::Source Repository::source_of(const std::string& name, int64_t version) const {
  if (version == 0) version = std::stoll(find(name, "")->version());
  {
    const std::shared_lock lock(mutex_);
    const auto model = models_.find(name);
    if (model == models_.end()) fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
    const auto found = model->second.versions.find(version);
    if (found != model->second.versions.end() && found->second.handle) return {found->second.file, version};
  }
  try {
    return {version_file(scan_model(root_of(name), name), version), version};
  } catch (const Error& error) {
    fail(error.code(), "Request for unknown model: '", name, "' version ", version, " is not found: ", error.what());
  }
}

std::string Repository::root_of(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model != models_.end() && !model->second.root.empty()) return model->second.root;
  return options_.roots.front();
}

fs::path Repository::folder_of(const std::string& name) const { return fs::path(root_of(name)) / name; }

bool Repository::serves(const std::string& name, const ModelLayout::Version& version) const {
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return false;
  const auto found = model->second.versions.find(version.number);
  return found != model->second.versions.end() && found->second.handle;
}

// Loads what the layout has and is not served yet, then serves exactly that.
void Repository::serve_layout(const std::string& root, const ModelLayout& layout) {
  std::map<int64_t, VersionEntry> loaded;
  for (const ModelLayout::Version& version : layout.versions) {
    if (serves(layout.name, version)) continue;
    VersionEntry entry = try_load({layout, version});
    // Where a policy wants several, one that was broken before is no reason against another.
    if (!entry.handle && version.number == layout.versions.back().number) {
      fail(ErrorCode::kFailedPrecondition, layout.name, " version ", version.number,
           " cannot be served: ", entry.reason);
    }
    loaded[version.number] = std::move(entry);
  }
  std::vector<std::shared_ptr<ModelVersion>> retired;
  {
    const std::unique_lock lock(mutex_);
    Entry& entry = models_[layout.name];
    entry.root = root;
    entry.error.clear();
    std::map<int64_t, VersionEntry> before = std::move(entry.versions);
    entry.versions = std::move(loaded);
    for (auto& [number, version] : before) {
      const bool is_wanted = std::any_of(layout.versions.begin(), layout.versions.end(),
                                         [&, wanted = number](const auto& item) { return item.number == wanted; });
      if (is_wanted) {
        entry.versions.try_emplace(number, std::move(version));
      } else if (version.handle) {
        retired.push_back(std::move(version.handle));
      }
    }
  }
  for (auto& version : retired) {
    version->metrics().set_ready(false);
    retired_.add(std::move(version));
  }
}

Repository::Added Repository::add_version(const std::string& name, const WriteVersion& write) {
  const std::lock_guard changes(change_mutex_);
  const std::string root = root_of(name);
  const fs::path folder = fs::path(root) / name;
  std::error_code error;
  const bool is_new_model = fs::create_directory(folder, error);
  if (error) fail(ErrorCode::kUnavailable, folder.string(), ": cannot be made: ", error.message());
  fs::path added;
  try {
    ModelLayout before = scan_model(root, name);
    // The folder of a version that is served may be gone.
    before.largest_number = std::max(before.largest_number, largest_ready(ready_versions(name)));
    int64_t number = 0;
    {
      const NewFolder temporary(before.folder);
      write(temporary.path(), model_file_name(before.config));
      number = take_next_version(before, temporary.path());
    }
    added = before.folder / std::to_string(number);
    const ModelLayout after = scan_model(root, name);
    const bool is_wanted = std::any_of(after.versions.begin(), after.versions.end(),
                                       [&](const auto& version) { return version.number == number; });
    if (is_wanted) serve_layout(root, after);
    log(LogLevel::kInfo, "model version added", {{"model", name}, {"version", number}, {"served", is_wanted}});
    return {number, is_wanted};
  } catch (...) {
    if (!added.empty()) fs::remove_all(added, error);
    if (is_new_model) fs::remove(folder, error);
    throw;
  }
}

Repository::RolledBack Repository::roll_back(const std::string& name) {
  const std::lock_guard changes(change_mutex_);
  find(name, "");  // throws where there is no such model
  const std::string root = root_of(name);
  const ModelLayout before = scan_model(root, name);
  if (before.config.version_policy == ModelConfig::VersionPolicy::kSpecific) {
    fail(ErrorCode::kFailedPrecondition, "model '", name,
         "' has a version policy that names its versions; change that");
  }
  const int64_t current = largest_ready(ready_versions(name));
  const fs::path withdrawn = withdraw_version(before, current);
  try {
    const ModelLayout after = scan_model(root, name);
    if (after.versions.empty()) {
      fail(ErrorCode::kFailedPrecondition, "model '", name, "' has no version before ", current);
    }
    serve_layout(root, after);
    log(LogLevel::kInfo, "model rolled back",
        {{"model", name}, {"withdrawn", current}, {"served", after.versions.back().number}});
    return {current, after.versions.back().number};
  } catch (...) {
    restore_version(before, current, withdrawn);
    throw;
  }
}

void Repository::unload(const std::string& name) {
  const std::lock_guard changes(change_mutex_);
  std::map<int64_t, VersionEntry> versions;
  {
    const std::unique_lock lock(mutex_);
    const auto model = models_.find(name);
    if (model == models_.end()) fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
    versions = std::move(model->second.versions);
    models_.erase(model);
  }
  for (auto& [number, version] : versions) {
    if (!version.handle) continue;
    version.handle->metrics().set_ready(false);
    retired_.add(std::move(version.handle));
  }
}

}  // namespace tensord::server
