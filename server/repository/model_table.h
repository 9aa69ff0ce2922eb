#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

#include "server/repository/model_entry.h"

namespace tensord::server {

// All models and their states, guarded by one lock that requests take too, so nothing slow may run under it. The
// repository's other parts read and change entries through this class and keep no state of models. Thread-safe.
class ModelTable {
 public:
  using Models = std::map<std::string, ModelEntry>;

  // `allows_labels`: find() accepts version labels. `notes_use`: record the time of each model's last request.
  ModelTable(bool allows_labels, bool notes_use) : allows_labels_(allows_labels), notes_use_(notes_use) {}

  // Calls `function` with all models (or with one existing model) under the lock, and returns its result. The function
  // must not call this object.
  template <class Function>
  auto read(const Function& function) const {
    const ReaderLock lock(mutex_);
    return function(models_);
  }
  template <class Function>
  auto change(const Function& function) {
    const WriterLock lock(mutex_);
    return function(models_);
  }
  // For one model, which is created if it does not exist.
  template <class Function>
  auto change(const std::string& name, const Function& function) {
    const WriterLock lock(mutex_);
    return function(models_[name]);
  }
  // For one model; a default-constructed result if it does not exist.
  template <class Function>
  auto read(const std::string& name, const Function& function) const {
    using Result = decltype(function(std::declval<const ModelEntry&>()));
    const ReaderLock lock(mutex_);
    const auto model = models_.find(name);
    return model == models_.end() ? Result() : function(model->second);
  }

  // See the functions of the same names in Repository.
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const;
  std::vector<std::string> ready_versions(const std::string& name) const;
  bool is_all_ready() const;
  void set_labels(const std::string& name, const std::map<std::string, int64_t>& labels);

  bool has(const std::string& name) const;
  bool is_served(const std::string& name) const;
  bool is_owner_served(OwnerId owner) const;
  // The plan of what is served of a model; none: nothing is served.
  std::optional<LoadPlan> plan_of_served(const std::string& name) const;

  struct IndexEntry {
    std::string name;
    std::string version;              // empty: the model has no versions, or was never loaded
    std::optional<ModelState> state;  // none: never loaded
    std::string reason;
  };
  // All known models and all that are in repositories (name → repositories).
  std::vector<IndexEntry> index(const std::map<std::string, std::vector<std::string>>& on_disk) const;

 private:
  int64_t parse_version_or_label(const ModelEntry& entry, const std::string& text) const;

  const bool allows_labels_, notes_use_;
  mutable SharedMutex mutex_;
  Models models_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
