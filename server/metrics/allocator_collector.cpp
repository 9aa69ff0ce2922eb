#include "server/metrics/allocator_collector.h"

#include "core/tensor/memory/caching_allocator.h"
#include "server/metrics/metric_families.h"

namespace tensord::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily of_pool(const char* name, const char* help, MetricType type, uint64_t value) {
  MetricFamily out = make_family(name, help, type);
  add_sample(out, {{"device", "cpu"}}, static_cast<double>(value));
  return out;
}

}  // namespace

std::vector<MetricFamily> AllocatorCollector::Collect() const {
  const CachingAllocator& allocator = cpu_allocator();
  const AllocatorStats stats = allocator.stats();
  MetricFamily live = make_family("tensord_memory_bytes", "Bytes of tensors alive, by owner", MetricType::Gauge);
  MetricFamily peak = make_family("tensord_memory_peak_bytes", "Most bytes ever alive, by owner", MetricType::Gauge);
  for (const OwnerBytes& owner : allocator.owners()) {
    add_sample(live, {{"owner", owner.name}}, static_cast<double>(owner.live_bytes));
    add_sample(peak, {{"owner", owner.name}}, static_cast<double>(owner.peak_bytes));
  }
  return {
      std::move(live),
      std::move(peak),
      of_pool("tensord_pool_live_bytes", "Bytes in use by tensors", MetricType::Gauge, stats.live_bytes),
      of_pool("tensord_pool_cached_bytes", "Bytes held free for reuse", MetricType::Gauge, stats.cached_bytes),
      of_pool("tensord_pool_reserved_bytes", "Bytes taken from the device", MetricType::Gauge, stats.reserved_bytes),
      of_pool("tensord_pool_peak_live_bytes", "Most bytes ever in use", MetricType::Gauge, stats.peak_live_bytes),
      of_pool("tensord_pool_allocations_total", "Blocks asked for", MetricType::Counter, stats.allocations),
      of_pool("tensord_pool_cache_hits_total", "Blocks served from the cache", MetricType::Counter, stats.cache_hits),
      of_pool("tensord_pool_out_of_memory_total", "Blocks refused", MetricType::Counter, stats.out_of_memory),
  };
}

}  // namespace tensord::server
