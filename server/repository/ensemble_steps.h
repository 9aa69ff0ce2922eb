#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"

#include "server/repository/model_table.h"

namespace tensord::server {

// Which ensembles run which models. Thread-safe.
class EnsembleSteps {
 public:
  explicit EnsembleSteps(const ModelTable& models) : models_(models) {}

  // The models that an ensemble runs stay while it is being loaded.
  class Hold {
   public:
    Hold(EnsembleSteps& steps, const ModelConfig& ensemble);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    EnsembleSteps& steps_;
    std::set<std::string> names_;
  };
  // Returns when no ensemble that runs the model is being loaded, or after that time.
  void wait_for_loads_of(const std::string& step, std::chrono::seconds timeout);

  // Ensembles that are served and run the model, or run such an ensemble, which come later.
  std::vector<std::string> running(const std::string& step) const;
  // Ensembles that went with the model, and come back with it.
  std::vector<std::string> waiting_for(const std::string& step) const;
  // Whether a step of an ensemble that is served has other versions now than when it was planned.
  bool is_outdated(const std::string& ensemble) const;
  // Models that were loaded for the ensemble alone.
  std::vector<std::string> loaded_along_with(const std::string& ensemble) const;
  // Ensembles that are not served and tried to run one of the models.
  std::vector<std::string> that_tried(const std::vector<std::string>& steps) const;

  // The ensembles among the plans, each after those that it runs; where they run each other, in any order.
  static std::vector<const LoadPlan*> in_order(const std::vector<LoadPlan>& plans);

 private:
  const ModelTable& models_;
  Mutex mutex_;
  CondVar released_;
  std::map<std::string, int> held_ TENSORD_GUARDED_BY(mutex_);  // by how many loads of ensembles
};

}  // namespace tensord::server
