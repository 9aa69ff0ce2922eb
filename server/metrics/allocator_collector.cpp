#include "server/metrics/allocator_collector.h"

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/memory/accounts.h"
#include "server/metrics/metric_families.h"

namespace tensord::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

using Allocators = std::vector<std::pair<Device, CachingAllocator*>>;

MetricFamily of_pools(const Allocators& allocators, const char* name, const char* help, MetricType type,
                      uint64_t AllocatorStats::*value) {
  MetricFamily out = make_family(name, help, type);
  for (const auto& [device, allocator] : allocators) {
    const std::string label = device.is_host() ? "cpu" : to_string(device);
    add_sample(out, {{"device", label}}, static_cast<double>(allocator->stats().*value));
  }
  return out;
}

}  // namespace

std::vector<MetricFamily> AllocatorCollector::Collect() const {
  MetricFamily live =
      make_family("tensord_memory_bytes", "Bytes of tensors alive on all devices, by owner", MetricType::Gauge);
  MetricFamily peak = make_family("tensord_memory_peak_bytes", "Most bytes ever alive, by owner", MetricType::Gauge);
  for (const OwnerBytes& owner : bytes_of_owners()) {
    add_sample(live, {{"owner", owner.name}}, static_cast<double>(owner.live_bytes));
    add_sample(peak, {{"owner", owner.name}}, static_cast<double>(owner.peak_bytes));
  }
  const Allocators all = used_allocators();
  constexpr MetricType kGauge = MetricType::Gauge, kCounter = MetricType::Counter;
  using Stats = AllocatorStats;
  return {
      std::move(live),
      std::move(peak),
      of_pools(all, "tensord_pool_live_bytes", "Bytes in use by tensors", kGauge, &Stats::live_bytes),
      of_pools(all, "tensord_pool_cached_bytes", "Bytes held free for reuse", kGauge, &Stats::cached_bytes),
      of_pools(all, "tensord_pool_reserved_bytes", "Bytes taken from the device", kGauge, &Stats::reserved_bytes),
      of_pools(all, "tensord_pool_peak_live_bytes", "Most bytes ever in use", kGauge, &Stats::peak_live_bytes),
      of_pools(all, "tensord_pool_allocations_total", "Blocks asked for", kCounter, &Stats::allocations),
      of_pools(all, "tensord_pool_cache_hits_total", "Blocks served from the cache", kCounter, &Stats::cache_hits),
      of_pools(all, "tensord_pool_out_of_memory_total", "Blocks refused", kCounter, &Stats::out_of_memory),
  };
}

}  // namespace tensord::server
