#pragma once

#include <memory>
#include <optional>

#include "server/repository/model_entry.h"
#include "server/repository/repository_settings.h"
#include "server/scheduler/core_budget.h"
#include "server/scheduler/worker_pool.h"

namespace tensord::server {

// Loads versions of models from their files and warms them up. Owns what runs of all of them share, so it must outlive
// them. Thread-safe.
class VersionLoader {
 public:
  // `settings`, `metrics` and `directory`, which looks up the models of ensembles, must outlive this object.
  VersionLoader(const RepositorySettings& settings, ModelFactory factory, Metrics& metrics, ModelDirectory& directory);

  // Loads a version and warms it up on the calling thread. Problems of the version are returned as a reason, not
  // thrown; throws Error{kResourceExhausted} if there is not enough memory. `is_reload`: other versions of the model
  // are served meanwhile, so the load has a lower priority than requests.
  LoadedVersion load(const ModelLayout& model, const ModelLayout::Version& version, bool is_reload);

  // The cores that runs of all models share; null: each run has its own threads.
  CoreBudget* cores() { return settings_.cores > 0 ? &cores_ : nullptr; }

 private:
  std::unique_ptr<const Model> open(const ModelLayout& model, const ModelLayout::Version& version, OwnerId owner);
  std::shared_ptr<ModelVersion> make(const ModelLayout& model, const ModelLayout::Version& version, int nice);
  // For the thread that loads; also warns of policies that are not defined.
  std::optional<HostPlacement> place_load(const ModelLayout& model) const;
  ModelVersion::Options options_for(const ModelConfig& config, const Signature& signature);

  const RepositorySettings& settings_;
  const ModelFactory factory_;
  Metrics& metrics_;
  ModelDirectory& directory_;
  CoreBudget cores_;
  WorkerPool pool_;
};

}  // namespace tensord::server
