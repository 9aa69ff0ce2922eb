#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace tensord::server {

// Memory by owner and the caching allocators' statistics, read when metrics are asked for.
class AllocatorCollector final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace tensord::server
