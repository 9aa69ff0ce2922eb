#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <mutex>
#include <vector>

#include "server/metrics/metrics.h"

namespace tensord::server {

// Connections of the gRPC port, read when metrics are asked for. Thread-safe.
class ConnectionCollector final : public prometheus::Collectable {
 public:
  void watch(std::function<ConnectionCounts()> counts);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable std::mutex mutex_;
  std::function<ConnectionCounts()> counts_;  // by mutex_
};

}  // namespace tensord::server
