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

  // While it lives, the models of an ensemble that is being loaded are not unloaded.
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
  // Returns when no ensemble that runs the model is being loaded, or after the given time.
  void wait_for_loads_of(const std::string& step, std::chrono::seconds timeout);

  // Served ensembles that run the model, followed by those that run such an ensemble.
  std::vector<std::string> running(const std::string& step) const;
  // Ensembles that were unloaded with the model and will be loaded with it again.
  std::vector<std::string> waiting_for(const std::string& step) const;
  // Whether a step of a served ensemble has other versions than when the ensemble was loaded.
  bool is_outdated(const std::string& ensemble) const;
  // Models that were loaded only because the ensemble needs them.
  std::vector<std::string> loaded_along_with(const std::string& ensemble) const;
  // Ensembles that could not be loaded because of one of these models.
  std::vector<std::string> that_tried(const std::vector<std::string>& steps) const;

  // The ensembles among the plans, each after the ensembles that it runs; in any order if they form a cycle.
  static std::vector<const LoadPlan*> in_order(const std::vector<LoadPlan>& plans);

 private:
  const ModelTable& models_;
  Mutex mutex_;
  CondVar released_;
  std::map<std::string, int> held_ TENSORD_GUARDED_BY(mutex_);  // number of loading ensembles that hold it
};

}  // namespace tensord::server
