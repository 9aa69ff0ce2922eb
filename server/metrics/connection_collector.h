#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <vector>

#include "core/base/mutex.h"

#include "server/metrics/metrics.h"

namespace tensord::server {

// Collects the connections of the gRPC port on each scrape. Thread-safe.
class ConnectionCollector final : public prometheus::Collectable {
 public:
  void watch(std::function<ConnectionCounts()> counts);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable Mutex mutex_;
  std::function<ConnectionCounts()> counts_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
