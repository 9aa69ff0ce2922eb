#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

#include "server/metrics/metrics.h"

namespace tensord::server {

// Collects the plan caches of all model versions on each scrape. Thread-safe.
class PlanCollector final : public prometheus::Collectable {
 public:
  void watch(const std::string& model, const std::string& version, std::function<PlanCounts()> counts);
  void forget(const std::string& model, const std::string& version);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::function<PlanCounts()>> models_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
