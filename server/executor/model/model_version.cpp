#include "server/executor/model/model_version.h"

#include "core/base/error.h"
#include "core/base/thread_priority.h"
#include "server/executor/model/sequence_model.h"
#include "server/executor/strategies/ensemble_plan.h"
#include "server/executor/strategies/response_cache.h"
#include "server/executor/warmup/output_probe.h"

namespace tensord::server {
namespace {

// Fills in what an ensemble's configuration leaves to its steps.
ModelConfig completed(ModelConfig config, const ModelDirectory* directory) {
  if (!config.is_ensemble() || config.is_decoupled) return config;
  config.is_decoupled = has_decoupled_step(config, *directory);
  check(!config.is_decoupled || !config.has_response_cache,
        "response_cache cannot be used with the decoupled transaction policy, which a step of the ensemble has");
  return config;
}

ClassLabels class_labels_of(const ModelConfig& config, const ModelDirectory* directory) {
  return config.is_ensemble() ? ensemble_labels(config, *directory) : read_class_labels(config);
}

}  // namespace

ModelVersion::ModelVersion(std::string name, int64_t version, std::unique_ptr<const Model> model, ModelConfig config,
                           Options options, ModelMetrics& metrics)
    : name_(std::move(name)),
      version_text_(std::to_string(version)),
      model_(std::move(model)),
      config_(completed(std::move(config), options.directory)),
      request_signature_(request_signature(model_->signature(), config_)),
      class_labels_(class_labels_of(config_, options.directory)),
      metrics_owner_(std::move(options.metrics_owner)),
      metrics_(metrics),
      owner_(memory_owner(name_ + "/" + version_text_)),
      workers_(name_, *model_,
               {.workers = config_.is_ensemble() ? 0 : options.workers,
                .threads_per_worker = options.threads_per_worker,
                .cores = options.cores,
                .placements = options.placements,
                .warmup = options.warmup},
               owner_) {
  check(!config_.has_response_cache || !model_->signature().keeps_state,
        "response_cache: the model keeps state between requests");
  run_with_nice(options.warmup_nice, [&] {
    {
      const MemoryOwnerScope owner_scope(owner_);
      complete_outputs(*model_, options.warmup, options.threads_per_worker, request_signature_);
    }
    workers_.warm_up();
  });
  workers_.end_warm_up();
  learned_.begin(request_signature_);
  warnings_ = model_->warnings();
  warnings_.insert(warnings_.end(), workers_.warnings().begin(), workers_.warnings().end());
  strategy_ = make_strategy({.model = name_,
                             .config = config_,
                             .signature = model_->signature(),
                             .workers = &workers_,
                             .metrics = metrics_,
                             .directory = options.directory,
                             .rate_limiter = options.rate_limiter,
                             .default_queue_size = options.max_queue_size,
                             .pool = options.pool});
  metrics_.set_has_cache(options.cache && config_.has_response_cache);
  if (options.cache && config_.has_response_cache)
    strategy_ = make_cached_strategy(std::move(strategy_), *options.cache, metrics_);
  metrics_.set_tags(config_.metric_tags);
  metrics_.set_workers(workers_.size());
}

const std::vector<std::string>& ModelVersion::class_labels(const std::string& output) const {
  static const std::vector<std::string> kNone;
  const auto found = class_labels_.find(output);
  return found == class_labels_.end() ? kNone : found->second;
}

ModelVersion::~ModelVersion() { strategy_->stop(); }

}  // namespace tensord::server
