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

// All models and their states, under the one lock that requests take too: what is done with it held takes no time. The
// parts of the repository read and change entries here, and keep no state of models themselves. Thread-safe.
class ModelTable {
 public:
  using Models = std::map<std::string, ModelEntry>;

  // `allows_labels`: find() takes labels. `notes_use`: it writes down when a model was last asked for.
  ModelTable(bool allows_labels, bool notes_use) : allows_labels_(allows_labels), notes_use_(notes_use) {}

  // What `function` of the models (or of one that is there) gives back; it must call nothing that comes back here.
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
  // Of one model, which is made when it is not there.
  template <class Function>
  auto change(const std::string& name, const Function& function) {
    const WriterLock lock(mutex_);
    return function(models_[name]);
  }
  // Of one model; the default of the function's type when it is not there.
  template <class Function>
  auto read(const std::string& name, const Function& function) const {
    using Result = decltype(function(std::declval<const ModelEntry&>()));
    const ReaderLock lock(mutex_);
    const auto model = models_.find(name);
    return model == models_.end() ? Result() : function(model->second);
  }

  // As Repository says of its functions of these names.
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const;
  std::vector<std::string> ready_versions(const std::string& name) const;
  bool is_all_ready() const;
  void set_labels(const std::string& name, const std::map<std::string, int64_t>& labels);

  bool has(const std::string& name) const;
  bool is_served(const std::string& name) const;
  bool is_owner_served(OwnerId owner) const;
  // What is served of a model came from it; none: nothing is.
  std::optional<LoadPlan> plan_of_served(const std::string& name) const;

  struct IndexEntry {
    std::string name;
    std::string version;              // empty: the model has none, or was never loaded
    std::optional<ModelState> state;  // none: never loaded
    std::string reason;
  };
  // Of all that are known here, and those that lie in repositories (name → repositories).
  std::vector<IndexEntry> index(const std::map<std::string, std::vector<std::string>>& on_disk) const;

 private:
  int64_t parse_version_or_label(const ModelEntry& entry, const std::string& text) const;

  const bool allows_labels_, notes_use_;
  mutable SharedMutex mutex_;
  Models models_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
