// The queue of a model, configured by dynamic_batching in config.pbtxt.
#include "server/executor/strategies/batch_rules.h"

#include <gmock/gmock.h>

#include "tests/server/error_of.h"

namespace tensord::server::batch_rules_test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kHourUs = uint64_t{3600} * 1'000'000;

struct Given {
  std::vector<int64_t> preferred = {};
  uint64_t delay_us = 0, levels = 0, level = 0;
};

DynamicBatchingConfig config_of(const Given& given) {
  DynamicBatchingConfig out;
  out.preferred_batch_sizes = given.preferred;
  out.max_queue_delay_us = given.delay_us;
  out.priority_levels = given.levels;
  out.default_priority_level = given.level;
  return out;
}

BatchRules rules_of(int64_t max_batch_size, const DynamicBatchingConfig& batching, const char* mixing = "") {
  ModelConfig config;
  config.dynamic_batching = batching;
  Signature signature;
  signature.max_batch_size = max_batch_size;
  signature.mixing_operator = mixing;
  return make_batch_rules(config, signature, 77);
}
BatchRules rules_of(int64_t max_batch_size, const Given& given, const char* mixing = "") {
  return rules_of(max_batch_size, config_of(given), mixing);
}
std::string refusal(int64_t max_batch_size, const Given& given) {
  return error_of([&] { rules_of(max_batch_size, given); }).what();
}

TEST(BatchRulesOfAConfig, WithoutBatchingOneAtATime) {
  const BatchRules rules = make_batch_rules({}, {}, 77);
  EXPECT_EQ(rules.max_rows, 1);
  EXPECT_EQ(rules.max_delay_ns, 0);
  EXPECT_EQ(rules.queue.max_size, 77u);
  EXPECT_FALSE(rules.queue.allows_timeout);
}

// Without batching, no request waits for others.
TEST(BatchRulesOfAConfig, DelaysAreOfModelsWithBatches) {
  for (const int64_t rows : {0, 1}) {
    const BatchRules rules = rules_of(rows, Given{.preferred = {1}, .delay_us = kHourUs + 1});
    EXPECT_EQ(rules.max_rows, 1);
    EXPECT_EQ(rules.max_delay_ns, 0);
    EXPECT_TRUE(rules.preferred_rows.empty());
  }
  const BatchRules mixing = rules_of(8, Given{.preferred = {4}, .delay_us = 5}, "aten::batch_norm");
  EXPECT_EQ(mixing.max_rows, 1);
  EXPECT_EQ(mixing.max_delay_ns, 0);
  const BatchRules two = rules_of(2, Given{.preferred = {1, 2}, .delay_us = kHourUs});
  EXPECT_EQ(two.max_rows, 2);
  EXPECT_EQ(two.max_delay_ns, static_cast<int64_t>(kHourUs) * 1000);
  EXPECT_EQ(two.preferred_rows, (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(refusal(2, {.delay_us = kHourUs + 1}), HasSubstr("is more than an hour"));
}

TEST(BatchRulesOfAConfig, PreferredSizesAreThoseThatABatchCanHave) {
  for (const int64_t rows : {0, 1, 8}) {
    const int64_t max = std::max<int64_t>(rows, 1);
    for (const int64_t good : {int64_t{1}, max}) EXPECT_NO_THROW(rules_of(rows, Given{.preferred = {good}}));
    for (const int64_t bad : {int64_t{0}, int64_t{-1}, max + 1}) {
      EXPECT_THAT(refusal(rows, {.preferred = {1, bad}}), HasSubstr("must be from 1 to max_batch_size"));
    }
  }
}

TEST(BatchRulesOfAConfig, PrioritiesAndQueues) {
  EXPECT_EQ(rules_of(2, Given{.level = 9}).default_priority, 1u) << "priorities are not looked at";
  for (const uint64_t level : {1, 3}) {
    const BatchRules rules = rules_of(2, Given{.levels = 3, .level = level});
    EXPECT_EQ(rules.priority_levels, 3u);
    EXPECT_EQ(rules.default_priority, level);
  }
  for (const uint64_t level : {0, 4}) {
    EXPECT_THAT(refusal(2, Given{.levels = 3, .level = level}), HasSubstr("must be from 1 to 3"));
  }
  DynamicBatchingConfig batching = config_of({.levels = 2, .level = 2});
  batching.preserves_ordering = true;
  batching.default_queue_policy.default_timeout_us = 5;
  batching.default_queue_policy.allows_timeout_override = true;
  batching.priority_queue_policies[1].timeout_action = QueuePolicyConfig::TimeoutAction::kDelay;
  batching.priority_queue_policies[1].max_queue_size = 1;
  const BatchRules rules = rules_of(2, batching);
  EXPECT_TRUE(rules.keeps_order);
  EXPECT_EQ(rules.queue.max_size, 77u);
  EXPECT_EQ(rules.queue.timeout_us, 5u);
  EXPECT_TRUE(rules.queue.allows_timeout);
  EXPECT_FALSE(rules.queue.delays_late);
  EXPECT_EQ(rules.own_queues.at(1).max_size, 1u);
  EXPECT_EQ(rules.own_queues.at(1).timeout_us, 0u);
  EXPECT_FALSE(rules.own_queues.at(1).allows_timeout);
  EXPECT_TRUE(rules.own_queues.at(1).delays_late);
}

}  // namespace
}  // namespace tensord::server::batch_rules_test
