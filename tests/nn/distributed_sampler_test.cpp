// The samples of each rank compared with PyTorch's DistributedSampler, and resumed with another number of ranks.
#include "core/nn/data/distributed_sampler.h"

#include <algorithm>

#include "tests/nn/nn_cases.h"

namespace tensord::nn::distributed_sampler_test {
namespace {

using ops::Value;

std::vector<int64_t> rest_of(DistributedSampler& sampler, int64_t max = INT64_MAX) {
  std::vector<int64_t> order;
  while (static_cast<int64_t>(order.size()) < max) {
    const auto index = sampler.next();
    if (!index) break;
    order.push_back(*index);
  }
  return order;
}

TEST(DistributedSampler, OrdersEqualPyTorch) {
  using Rest = DistributedSampler::Options::Rest;
  const Value all = load_cases("ddp");
  ASSERT_GT(items(all, "samplers").size(), 10u);
  for (const Value& c : items(all, "samplers")) {
    const auto world = static_cast<int>(item(c, "world").to_int());
    for (int rank = 0; rank < world; ++rank) {
      DistributedSampler sampler(item(c, "size").to_int(), world, rank,
                                 {.shuffle = item(c, "shuffle").to_bool(),
                                  .seed = static_cast<uint64_t>(item(c, "seed").to_int()),
                                  .rest = item(c, "drop_last").to_bool() ? Rest::kDrop : Rest::kPad});
      sampler.set_epoch(item(c, "epoch").to_int());
      sampler.start_epoch();
      std::vector<int64_t> expected;
      for (const Value& index : get_items(items(c, "orders")[static_cast<size_t>(rank)], "order")) {
        expected.push_back(index.to_int());
      }
      EXPECT_EQ(sampler.size(), static_cast<int64_t>(expected.size()));
      EXPECT_EQ(rest_of(sampler), expected) << "size " << item(c, "size").to_int() << " world " << world;
    }
  }
}

TEST(DistributedSampler, UnevenGivesEachSampleOnce) {
  std::vector<int64_t> all;
  for (int rank = 0; rank < 4; ++rank) {
    DistributedSampler sampler(11, 4, rank, {.rest = DistributedSampler::Options::Rest::kUneven});
    sampler.start_epoch();
    const auto part = rest_of(sampler);
    EXPECT_EQ(part.size(), rank < 3 ? 3u : 2u);
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 11; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
}

TEST(DistributedSampler, GoesOnWithAnotherNumberOfRanks) {
  DistributedSampler whole(24, 1, 0, {.seed = 9});
  whole.set_epoch(2);
  whole.start_epoch();
  const auto order = rest_of(whole);
  // Two ranks consume six samples each, then three ranks continue.
  std::optional<Value> state;
  for (int rank = 0; rank < 2; ++rank) {
    DistributedSampler sampler(24, 2, rank, {.seed = 9});
    sampler.set_epoch(2);
    sampler.start_epoch();
    rest_of(sampler, 6);
    state = sampler.state_dict();
  }
  for (int rank = 0; rank < 3; ++rank) {
    DistributedSampler sampler(24, 3, rank, {.seed = 9});
    sampler.load_state_dict(*state);
    const auto rest = rest_of(sampler);
    ASSERT_EQ(rest.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rest[i], order[12 + i * 3 + static_cast<size_t>(rank)]);
    sampler.start_epoch();
    EXPECT_EQ(sampler.epoch(), 3);
  }
}

}  // namespace
}  // namespace tensord::nn::distributed_sampler_test
