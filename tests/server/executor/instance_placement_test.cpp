// Where the instances of a model are, and what --host-policy says of them.
#include "server/executor/model/instance_placement.h"

#include <gmock/gmock.h>

namespace tensord::server::instance_placement_test {
namespace {

using ::testing::ElementsAre;

InstanceGroupConfig group(int count, const std::string& policy) {
  InstanceGroupConfig out;
  out.kind = InstanceGroupConfig::Kind::kCpu;
  out.count = count;
  out.host_policy = policy;
  return out;
}

TEST(InstancePlacement, EachInstanceHasThePolicyOfItsGroup) {
  const HostPolicies policies{{"left", {.cores = {0}, .nodes = {}}}, {"cpu", {.cores = {1}, .nodes = {}}}};
  const HostPlacement *const left = &policies.at("left"), *const cpu = &policies.at("cpu");
  ModelConfig config;
  EXPECT_THAT(host_placements(config, policies, {}, 2, {}), ElementsAre(cpu, cpu));
  config.instance_groups = {group(2, "left"), group(1, ""), group(1, "nowhere")};
  const std::vector<Device> instances = place_instances(config, {});
  EXPECT_THAT(host_placements(config, policies, instances, 4, {}), ElementsAre(left, left, cpu, nullptr));
  EXPECT_TRUE(host_placements(config, {}, instances, 4, {}).empty());
}

TEST(InstancePlacement, SharedWorkIsWhereAnyOfThemIs) {
  const HostPlacement left{.cores = {0, 1}, .nodes = {0}}, right{.cores = {1, 2}, .nodes = {1}},
      anywhere_on_cores{.cores = {3}, .nodes = {}}, memory_only{.cores = {}, .nodes = {2}};
  EXPECT_EQ(joined({&left}), left);
  EXPECT_EQ(joined({&left, &right}), (HostPlacement{.cores = {0, 1, 2}, .nodes = {0, 1}}));
  EXPECT_EQ(joined({&left, &anywhere_on_cores}), (HostPlacement{.cores = {0, 1, 3}, .nodes = {}}));
  EXPECT_EQ(joined({&left, &memory_only}), (HostPlacement{.cores = {}, .nodes = {0, 2}}));
  EXPECT_EQ(joined({&left, nullptr}), std::nullopt);
  EXPECT_EQ(joined({}), std::nullopt);
}

}  // namespace
}  // namespace tensord::server::instance_placement_test
