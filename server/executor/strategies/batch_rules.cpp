#include "server/executor/strategies/batch_rules.h"

#include <algorithm>

#include "core/base/error.h"
#include "server/executor/strategies/execution_strategy.h"

namespace tensord::server {
namespace {

QueueRules to_queue_rules(const QueuePolicyConfig& policy, size_t default_size) {
  return {.max_size = policy.max_queue_size > 0 ? policy.max_queue_size : default_size,
          .timeout_us = policy.default_timeout_us,
          .allows_timeout = policy.allows_timeout_override,
          .delays_late = policy.timeout_action == QueuePolicyConfig::TimeoutAction::kDelay};
}

}  // namespace

BatchRules make_batch_rules(const ModelConfig& config, const Signature& signature, size_t default_queue_size) {
  BatchRules rules;
  if (!config.dynamic_batching) {
    rules.queue = {.max_size = default_queue_size, .allows_timeout = false};  // as in Triton
    return rules;
  }
  const DynamicBatchingConfig& batching = *config.dynamic_batching;
  rules.max_rows = signature.mixing_operator.empty() ? std::max<int64_t>(signature.max_batch_size, 1) : 1;
  for (const int64_t size : batching.preferred_batch_sizes) {
    check(size > 0 && size <= std::max<int64_t>(signature.max_batch_size, 1), "dynamic_batching: preferred_batch_size ",
          size, " must be from 1 to max_batch_size, ", signature.max_batch_size);
  }
  if (rules.max_rows > 1) rules.preferred_rows = batching.preferred_batch_sizes;
  // Requests without a batch dimension cannot share a batch, so none waits for others.
  if (rules.max_rows > 1) {
    constexpr uint64_t kMaxDelayUs = uint64_t{3600} * 1'000'000;
    check(batching.max_queue_delay_us <= kMaxDelayUs, "dynamic_batching: max_queue_delay_microseconds ",
          batching.max_queue_delay_us, " is more than an hour");
    rules.max_delay_ns = static_cast<int64_t>(batching.max_queue_delay_us) * 1000;
  }
  rules.keeps_order = batching.preserves_ordering;
  const uint64_t levels = std::max<uint64_t>(batching.priority_levels, 1);
  check(batching.priority_levels == 0 ||
            (batching.default_priority_level >= 1 && batching.default_priority_level <= levels),
        "dynamic_batching: default_priority_level ", batching.default_priority_level, " must be from 1 to ", levels);
  rules.priority_levels = levels;
  rules.default_priority = batching.priority_levels == 0 ? 1 : batching.default_priority_level;
  rules.queue = to_queue_rules(batching.default_queue_policy, default_queue_size);
  for (const auto& [level, policy] : batching.priority_queue_policies) {
    rules.own_queues[level] = to_queue_rules(policy, default_queue_size);
  }
  return rules;
}

std::unique_ptr<RateLimiter::Client> make_rate_limiter_client(const StrategyContext& context) {
  const RateLimiterConfig& config = context.config.rate_limiter;
  if (context.rate_limiter == nullptr || config.resources.empty()) return nullptr;
  std::vector<RateLimiter::Resource> needs;
  for (const auto& resource : config.resources) {
    needs.push_back({.name = resource.name, .is_global = resource.is_global, .count = resource.count});
  }
  // As in Triton, what runs on the CPU counts as on device 0.
  std::vector<int> devices(context.workers->size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const Signature& signature = context.signature;
    const Device device = i < signature.instances.size() ? signature.instances[i] : signature.device;
    devices[i] = device.is_host() ? 0 : device.index;
  }
  return context.rate_limiter->add_client(context.model, std::move(needs), config.priority, std::move(devices));
}

}  // namespace tensord::server
