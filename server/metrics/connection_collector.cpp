#include "server/metrics/connection_collector.h"

#include "core/base/mutex.h"

#include "server/metrics/metric_families.h"

namespace tensord::server {

using prometheus::MetricType;

void ConnectionCollector::watch(std::function<ConnectionCounts()> counts) {
  const MutexLock lock(mutex_);
  counts_ = std::move(counts);
}

std::vector<prometheus::MetricFamily> ConnectionCollector::Collect() const {
  const MutexLock lock(mutex_);
  if (!counts_) return {};
  const ConnectionCounts counts = counts_();
  std::vector<prometheus::MetricFamily> out = {
      make_family("tensord_grpc_connections", "Connections of gRPC clients", MetricType::Gauge),
      make_family("tensord_grpc_open_streams", "Calls that are open on them", MetricType::Gauge),
      make_family("tensord_grpc_connections_refused_total",
                  "Connections refused on arrival: too many, or the address must wait", MetricType::Counter),
      make_family("tensord_grpc_connections_cut_total", "Connections closed because of the client's frames, by reason",
                  MetricType::Counter)};
  add_sample(out[0], {}, counts.open);
  add_sample(out[1], {}, counts.open_streams);
  add_sample(out[2], {}, counts.refused);
  for (const auto& [reason, count] : counts.cut) add_sample(out[3], {{"reason", reason}}, count);
  return out;
}

}  // namespace tensord::server
