// Versions that training adds and withdraws.
#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/repository/repository.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// A temporary folder, removed unless it was moved into place.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& in) {
    std::string pattern = (in / ".new-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) fail(ErrorCode::kUnavailable, in.string(), ": no folder can be made in it");
    path_ = pattern;
  }
  ~NewFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  const fs::path& path() const { return path_; }
  // Sets the permissions that a copied model would have, because other servers may share the repository.
  void let_others_read() const {
    fs::permissions(path_, fs::perms(0755));
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
      fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0755) : fs::perms(0644));
    }
  }

 private:
  fs::path path_;
};

// The largest of sorted version numbers; 0 if there are none.
int64_t largest_of(const std::vector<std::string>& versions) {
  return versions.empty() ? 0 : std::stoll(versions.back());
}

}  // namespace

void Repository::serve_changed(const LoadPlan& plan) {
  const std::string& name = plan.layout.name;
  const int64_t number = plan.layout.versions.back().number;
  const auto forget_it = [&] {
    models_.change([&](ModelTable::Models& models) {
      ModelEntry& entry = models[name];
      entry.forget_failed(number);
      if (!entry.has_versions()) models.erase(name);
    });
  };
  Failures failures;
  try {
    failures = serve(plan);
  } catch (const Error&) {
    forget_it();
    throw;
  }
  const auto failed = failures.find(number);
  // With a policy that selects several versions, an older broken version does not fail the new one.
  if (failed == failures.end()) return;
  forget_it();
  fail(ErrorCode::kFailedPrecondition, name, " version ", number, " cannot be served: ", failed->second);
}

Repository::Added Repository::add_version(const std::string& name, const WriteVersion& write,
                                          const std::string& file_name) {
  const Added added = add_version_alone(name, write, file_name);
  plan_ensembles_again(name);
  return added;
}

Repository::RolledBack Repository::roll_back(const std::string& name) {
  const RolledBack done = roll_back_alone(name);
  plan_ensembles_again(name);
  return done;
}

Repository::Added Repository::add_version_alone(const std::string& name, const WriteVersion& write,
                                                const std::string& file_name) {
  const InFlightLoads::Load load(in_flight_loads_, name);
  const auto room = budget_.hold();
  const NameLocks::Held held = names_.hold(name);
  const std::string root = planner_.root_of(name);
  const fs::path folder = fs::path(root) / name;
  std::error_code error;
  const bool is_new_model = fs::create_directory(folder, error);
  if (is_new_model) fs::permissions(folder, fs::perms(0755), error);
  if (error) fail(ErrorCode::kUnavailable, folder.string(), ": cannot be made: ", error.message());
  fs::path added;
  try {
    ModelLayout before = planner_.scan(root, name);
    // The folder of a served version may have been deleted.
    before.largest_number = std::max(before.largest_number, largest_of(ready_versions(name)));
    int64_t number = 0;
    {
      const NewFolder temporary(before.folder);
      write(temporary.path(), model_file_name(before, file_name));
      temporary.let_others_read();
      number = take_next_version(before, temporary.path());
    }
    added = before.folder / std::to_string(number);
    const LoadPlan after = planner_.of_folder(root, name);
    const bool is_wanted = std::any_of(after.layout.versions.begin(), after.layout.versions.end(),
                                       [&](const auto& version) { return version.number == number; });
    if (is_wanted) serve_changed(after);
    log(LogLevel::kInfo, "model version added",
        {{"model", name}, {"version", std::to_string(number)}, {"served", is_wanted}});
    return {number, is_wanted};
  } catch (...) {
    if (!added.empty()) fs::remove_all(added, error);
    if (is_new_model) fs::remove(folder, error);
    throw;
  }
}

Repository::RolledBack Repository::roll_back_alone(const std::string& name) {
  const InFlightLoads::Load load(in_flight_loads_, name);
  const auto room = budget_.hold();
  const NameLocks::Held held = names_.hold(name);
  find(name, "");  // throws if the model does not exist
  const std::string root = planner_.root_of(name);
  const ModelLayout before = planner_.scan(root, name);
  if (before.config.version_policy == ModelConfig::VersionPolicy::kSpecific) {
    fail(ErrorCode::kFailedPrecondition, "model '", name,
         "' has a version policy that names its versions; change that");
  }
  const int64_t current = largest_of(ready_versions(name));
  const fs::path withdrawn = withdraw_version(before, current);
  try {
    const LoadPlan after = planner_.of_folder(root, name);
    if (after.layout.versions.empty()) {
      fail(ErrorCode::kFailedPrecondition, "model '", name, "' has no version before ", current);
    }
    serve_changed(after);
    log(LogLevel::kInfo, "model rolled back",
        {{"model", name}, {"withdrawn", current}, {"served", after.layout.versions.back().number}});
    return {current, after.layout.versions.back().number};
  } catch (...) {
    restore_version(before, current, withdrawn);
    throw;
  }
}

}  // namespace tensord::server
