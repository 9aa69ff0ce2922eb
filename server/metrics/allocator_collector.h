#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace tensord::server {

// Collects memory by owner and the caching allocators' statistics on each scrape.
class AllocatorCollector final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace tensord::server
