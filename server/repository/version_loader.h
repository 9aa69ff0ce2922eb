#pragma once

#include <memory>

#include "server/repository/model_entry.h"
#include "server/repository/repository_settings.h"
#include "server/scheduler/core_budget.h"
#include "server/scheduler/worker_pool.h"

namespace tensord::server {

// Makes versions of models from their files, ready to serve. Owns what runs of all of them share, so it must outlive
// them. Thread-safe.
class VersionLoader {
 public:
  // `settings` and `metrics` must outlive it, as `directory`, where ensembles look for the models that they run.
  VersionLoader(const RepositorySettings& settings, ModelFactory factory, Metrics& metrics, ModelDirectory& directory);

  // Opens a version and warms it up, on the calling thread. Does not throw for what is wrong with the version: that is
  // the reason then. `is_reload`: versions of the model serve meanwhile, and requests go first.
  LoadedVersion load(const ModelLayout& model, const ModelLayout::Version& version, bool is_reload);

  // What runs of all models share; null where each takes its threads.
  CoreBudget* cores() { return settings_.cores > 0 ? &cores_ : nullptr; }

 private:
  std::unique_ptr<const Model> open(const ModelLayout& model, const ModelLayout::Version& version, OwnerId owner);
  std::shared_ptr<ModelVersion> make(const ModelLayout& model, const ModelLayout::Version& version, int nice);
  ModelVersion::Options options_for(const ModelConfig& config);

  const RepositorySettings& settings_;
  const ModelFactory factory_;
  Metrics& metrics_;
  ModelDirectory& directory_;
  CoreBudget cores_;
  WorkerPool pool_;
};

}  // namespace tensord::server
