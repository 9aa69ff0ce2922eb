#include "server/metrics/allocator_collector.h"

#include "core/tensor/memory/caching_allocator.h"

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily family(const char* name, const char* help, MetricType type) {
  MetricFamily out;
  out.name = name;
  out.help = help;
  out.type = type;
  return out;
}

void add(MetricFamily& to, const char* label, const std::string& label_value, double value) {
  ClientMetric metric;
  metric.label.push_back({label, label_value});
  (to.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  to.metric.push_back(std::move(metric));
}

MetricFamily single(const char* name, const char* help, MetricType type, uint64_t value) {
  MetricFamily out = family(name, help, type);
  add(out, "device", "cpu", static_cast<double>(value));
  return out;
}

}  // namespace

std::vector<MetricFamily> AllocatorCollector::Collect() const {
  const CachingAllocator& allocator = cpu_allocator();
  const AllocatorStats stats = allocator.stats();
  MetricFamily live = family("tensord_memory_bytes", "Bytes of tensors alive, by owner", MetricType::Gauge);
  MetricFamily peak = family("tensord_memory_peak_bytes", "Most bytes ever alive, by owner", MetricType::Gauge);
  for (const OwnerBytes& owner : allocator.owners()) {
    add(live, "owner", owner.name, static_cast<double>(owner.live_bytes));
    add(peak, "owner", owner.name, static_cast<double>(owner.peak_bytes));
  }
  return {
      std::move(live),
      std::move(peak),
      single("tensord_pool_live_bytes", "Bytes in use by tensors", MetricType::Gauge, stats.live_bytes),
      single("tensord_pool_cached_bytes", "Bytes held free for reuse", MetricType::Gauge, stats.cached_bytes),
      single("tensord_pool_reserved_bytes", "Bytes taken from the device", MetricType::Gauge, stats.reserved_bytes),
      single("tensord_pool_peak_live_bytes", "Most bytes ever in use", MetricType::Gauge, stats.peak_live_bytes),
      single("tensord_pool_allocations_total", "Blocks asked for", MetricType::Counter, stats.allocations),
      single("tensord_pool_cache_hits_total", "Blocks served from the cache", MetricType::Counter, stats.cache_hits),
      single("tensord_pool_out_of_memory_total", "Blocks refused", MetricType::Counter, stats.out_of_memory),
  };
}

}  // namespace tensord::server
