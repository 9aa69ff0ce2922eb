#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <vector>

#include "core/base/mutex.h"

#include "server/metrics/metrics.h"

namespace tensord::server {

// Collects the training jobs on each scrape. Thread-safe.
class TrainingCollector final : public prometheus::Collectable {
 public:
  void watch(std::function<std::vector<TrainingSample>()> samples);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable Mutex mutex_;
  std::function<std::vector<TrainingSample>()> samples_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
