// Which failed runs are repeated request by request, and what that implies about the model.
#include <gmock/gmock.h>

#include "tests/server/executor/batch_strategy_fixture.h"

namespace tensord::server::batch_repeats_test {
namespace {

using fixtures::Client;
using fixtures::Inputs;
using fixtures::named;
using fixtures::request_of;
using fixtures::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BatchRepeatsTest : public fixtures::BatchStrategyTest {
 protected:
  // Pads the only input to the next of `buckets`, with a value that the model refuses.
  void pad_to(std::vector<int64_t> buckets) {
    ModelConfig::TensorConfig input;
    input.name = "x";
    input.dims = {-1};
    input.has_dims = input.allows_ragged_batch = true;
    config.inputs = {input};
    config.ragged.padding_value = 13;
    blocker_size = buckets.back();  // not padded
    config.ragged.buckets = std::move(buckets);
  }
  void run_alone(const Dims& shape, const std::vector<float>& values, Client& client) {
    close();  // so the worker has finished the previous runs
    submit(request_of(shape, values), client);
    open();
    client.result();
  }
  // The shapes of the runs that two requests cause.
  std::vector<Dims> run_pair(Client& first, Client& second, const Dims& shape = {1, 1}) {
    close();
    const std::vector<float> values(static_cast<size_t>(checked_numel(shape)), 1);
    submit(request_of(shape, values), first);
    submit(request_of(shape, values), second);
    open();
    first.result();
    second.result();
    const std::lock_guard lock(mutex);
    return shapes;
  }
};

TEST_F(BatchRepeatsTest, OnlyWhatOthersOrPaddingChanged) {
  pad_to({4, 2});
  start();
  Client padded, whole;
  run_alone({1, 1}, {1}, padded);
  EXPECT_EQ(values_of(padded.result().outputs.at(0).tensor), std::vector<float>{2});
  EXPECT_THAT(shapes, ElementsAre(Dims{1, 2}, Dims{1, 1}));
  run_alone({1, 2}, {1, 13}, whole);
  EXPECT_EQ(whole.result().status, absl::InvalidArgumentError("13 is refused"));
  EXPECT_THAT(shapes, ElementsAre(Dims{1, 2})) << "as it came";
}

TEST_F(BatchRepeatsTest, NothingOfAModelThatKeepsState) {
  pad_to({2});
  signature.keeps_state = true;
  start();
  Client padded;
  run_alone({1, 1}, {1}, padded);
  EXPECT_EQ(padded.result().status, absl::InvalidArgumentError("13 is refused"));
  EXPECT_THAT(shapes, ElementsAre(Dims{1, 2}));
}

TEST_F(BatchRepeatsTest, WhileOneWaits) {
  takes_one = true;
  start();
  Client first, second;
  close();
  on_run = [&] { first.cancelled = true; };
  submit(request_of({1, 1}, {1}), first);
  submit(request_of({1, 1}, {2}), second);
  open();
  EXPECT_EQ(values_of(second.result().outputs.at(0).tensor), std::vector<float>{4});
}

TEST_F(BatchRepeatsTest, ACancelledBatchRunsOnce) {
  takes_one = true;
  start();
  Client first, second;
  std::atomic<int> runs = 0;
  close();
  on_run = [&] {
    ++runs;
    first.cancelled = second.cancelled = true;
  };
  submit(request_of({1, 1}, {1}), first);
  submit(request_of({1, 1}, {2}), second);
  open();
  EXPECT_FALSE(first.result().status.ok());
  EXPECT_FALSE(second.result().status.ok());
  EXPECT_EQ(runs, 1);
}

// Three failed batches in a row whose requests succeed alone end batching. A batch that nobody waited for does not
// count as a success, which would reset the count.
TEST_F(BatchRepeatsTest, ACancelledBatchSaysNothingOfTheModel) {
  takes_one = true;
  start();
  std::list<Client> clients(10);
  auto next = clients.begin();
  const auto pair = [&] {
    Client &first = *next++, &second = *next++;
    return run_pair(first, second).size();
  };
  EXPECT_EQ(pair(), 3u);
  EXPECT_EQ(pair(), 3u);
  Client &first = *next++, &second = *next++;
  on_run = [&] { first.cancelled = second.cancelled = shapes.back() == (Dims{2, 1}); };
  run_pair(first, second);
  close();
  on_run = nullptr;
  open();
  blocker.back().result();
  EXPECT_EQ(pair(), 3u);
  EXPECT_EQ(pair(), 2u);
}

TEST_F(BatchRepeatsTest, AGoodBatchBeginsTheRowAnew) {
  start();
  std::list<Client> clients(10);
  auto next = clients.begin();
  const auto pair = [&](bool is_refused) {
    takes_one = is_refused;
    Client &first = *next++, &second = *next++;
    return run_pair(first, second).size();
  };
  EXPECT_EQ(pair(true), 3u);
  EXPECT_EQ(pair(true), 3u);
  EXPECT_EQ(pair(false), 1u);
  EXPECT_EQ(pair(true), 3u);
  EXPECT_EQ(pair(true), 3u) << "the second in a row";
}

TEST_F(BatchRepeatsTest, WhatFailsForItsPaddingSaysNothingOfBatches) {
  pad_to({4});
  start();
  std::list<Client> clients(6);
  auto next = clients.begin();
  for (int i = 0; i < 4; ++i) run_alone({1, 1}, {1}, *next++);
  Client &first = *next++, &second = *next++;
  EXPECT_THAT(run_pair(first, second, {1, 4}), ElementsAre(Dims{2, 4}));
}

// If the inputs cannot be padded to one shape, each request runs alone.
TEST(BatchRepeats, PaddingThatTheirTypeCannotHold) {
  Metrics metrics("test");
  ModelConfig config;
  config.max_batch_size = 8;
  config.dynamic_batching.emplace();
  config.dynamic_batching->preferred_batch_sizes = {2};
  config.dynamic_batching->max_queue_delay_us = 10'000'000;
  config.inputs.resize(1);
  config.inputs[0].name = "x";
  config.inputs[0].allows_ragged_batch = true;
  config.ragged.padding_value = 1e9;
  const auto bytes_of = [](int64_t size) {
    return request_of(named("x", Tensor::empty(Dims{1, size}, DType::kUInt8)));
  };
  {
    ModelVersion model("m", 1, fixtures::identity_model(8), config, {}, metrics.model("m", "1"));
    Client shorter, longer;
    model.submit(bytes_of(1), shorter);
    model.submit(bytes_of(3), longer);
    EXPECT_EQ(shorter.result().outputs.at(0).shape, (Dims{1, 1}));
    EXPECT_EQ(longer.result().outputs.at(0).shape, (Dims{1, 3}));
  }
  config.dynamic_batching->max_queue_delay_us = 0;
  config.ragged.buckets = {4};
  ModelVersion model("m", 1, fixtures::identity_model(8), config, {}, metrics.model("m", "1"));
  Client alone;
  model.submit(bytes_of(3), alone);
  EXPECT_THAT(std::string(alone.result().status.message()), HasSubstr("parameter 'ragged_padding' is 1e+09"));
}

}  // namespace
}  // namespace tensord::server::batch_repeats_test
