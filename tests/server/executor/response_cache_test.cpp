#include "server/executor/strategies/response_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "core/base/clock.h"
#include "server/config/cache_options.h"
#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

namespace tensord::server::response_cache_test {
namespace {

using fixtures::FakeSink;

InferTensor floats(const std::string& name, const std::vector<float>& values) {
  return fixtures::float_tensor(name, {static_cast<int64_t>(values.size())}, values);
}

InferTensor texts(std::vector<std::string> values) {
  InferTensor out;
  out.name = "t";
  out.datatype = DataType::kBytes;
  out.shape = {static_cast<int64_t>(values.size())};
  out.strings = std::move(values);
  return out;
}

InferRequest request_of(std::vector<InferTensor> inputs, std::vector<std::string> outputs = {}) {
  InferRequest request;
  for (size_t i = 0; i < inputs.size(); ++i) request.input_indices.push_back(i);
  request.inputs = std::move(inputs);
  request.requested_outputs = std::move(outputs);
  return request;
}

TEST(ResponseCache, KeysTellRequestsApart) {
  ResponseCache cache(1 << 20);
  const uint64_t model = cache.add_model();
  const auto key = [&](InferRequest request) { return cache.key_of(model, request); };
  const auto x = key(request_of({floats("x", {1, 2})}));
  EXPECT_EQ(x, key(request_of({floats("other name", {1, 2})})));
  EXPECT_NE(x, key(request_of({floats("x", {1, 3})})));
  EXPECT_NE(x, key(request_of({floats("x", {1, 2})}, {"y"})));
  EXPECT_NE(x, cache.key_of(cache.add_model(), request_of({floats("x", {1, 2})})));
  InferRequest reshaped = request_of({floats("x", {1, 2})});
  reshaped.inputs[0].shape = {1, 2};
  EXPECT_NE(x, key(std::move(reshaped)));
  InferRequest retyped = request_of({floats("x", {1, 2})});
  retyped.inputs[0].datatype = DataType::kInt32;
  EXPECT_NE(x, key(std::move(retyped)));
  EXPECT_NE(key(request_of({texts({"ab", "c"})})), key(request_of({texts({"a", "bc"})})));
  InferRequest one = request_of({floats("a", {1}), floats("b", {2})}),
               other = request_of({floats("b", {2}), floats("a", {1})});
  other.input_indices = {1, 0};
  EXPECT_EQ(key(std::move(one)), key(std::move(other)));
  InferRequest scattered = request_of({floats("x", {1, 2})});
  const Tensor data = scattered.inputs[0].tensor;
  const auto* bytes = static_cast<const uint8_t*>(data.raw_data());
  auto pieces = std::make_shared<ScatteredBytes>();
  pieces->pieces = {{bytes, 3}, {bytes + 3, 5}};
  scattered.inputs[0].tensor = Tensor();
  scattered.inputs[0].scattered = pieces;
  EXPECT_EQ(x, key(std::move(scattered)));
}

TEST(ResponseCache, ForgetsWhatWasNotAskedForTheLongest) {
  ResponseCache cache(3 * 2000);
  const uint64_t model = cache.add_model();
  const auto key = [&](float number) { return cache.key_of(model, request_of({floats("x", {number})})); };
  for (const float number : {1.f, 2.f, 3.f}) cache.insert(key(number), {floats("y", std::vector<float>(350, number))});
  EXPECT_GT(cache.size_bytes(), 3u * 1400);
  ASSERT_TRUE(cache.find(key(1)));
  cache.insert(key(4), {floats("y", std::vector<float>(350, 4))});
  EXPECT_TRUE(cache.find(key(1)));
  EXPECT_FALSE(cache.find(key(2)));
  EXPECT_TRUE(cache.find(key(3)));
  EXPECT_EQ(cache.find(key(4))->at(0).tensor.data<float>()[349], 4);
  EXPECT_LE(cache.size_bytes(), cache.max_bytes());
  cache.insert(key(5), {floats("y", std::vector<float>(3000))});
  EXPECT_FALSE(cache.find(key(5)));
  EXPECT_TRUE(cache.find(key(4)));
  cache.remove_model(model);
  EXPECT_FALSE(cache.find(key(4)));
  EXPECT_EQ(cache.size_bytes(), 0u);
}

TEST(ResponseCache, HoldsAsMuchAsItsBytesExactly) {
  const auto outputs = [] { return std::vector<InferTensor>{floats("y", std::vector<float>(350))}; };
  const auto key = [](ResponseCache& cache, float number) {
    return cache.key_of(0, request_of({floats("x", {number})}));
  };
  ResponseCache large(1 << 20);
  large.insert(key(large, 1), outputs());
  const uint64_t one = large.size_bytes();
  for (const uint64_t bytes : {one - 1, one, 2 * one - 1, 2 * one}) {
    ResponseCache cache(bytes);
    cache.insert(key(cache, 1), outputs());
    cache.insert(key(cache, 2), outputs());
    EXPECT_EQ(cache.size_bytes(), bytes / one * one);
    EXPECT_EQ(cache.find(key(cache, 2)).has_value(), bytes >= one);
    EXPECT_EQ(cache.find(key(cache, 1)).has_value(), bytes == 2 * one);
  }
}

TEST(ResponseCache, KeepsACopyThatNobodyWritesTo) {
  ResponseCache cache(1 << 20);
  const auto key = cache.key_of(cache.add_model(), request_of({floats("x", {1})}));
  const InferTensor output = floats("y", {7, 8});
  cache.insert(key, {output});
  output.tensor.data<float>()[0] = 0;
  const auto kept = cache.find(key);
  EXPECT_EQ(kept->at(0).tensor.data<float>()[0], 7);
  EXPECT_FALSE(kept->at(0).tensor.storage()->is_writable());
}

class CachedModelTest : public ::testing::Test {
 protected:
  void load(int workers = 1) {
    ModelConfig config;
    config.has_response_cache = true;
    ModelVersion::Options options;
    options.workers = workers;
    options.cache = &cache_;
    version_.reset();
    version_ = std::make_unique<ModelVersion>(
        "m", 1,
        std::make_unique<fixtures::FakeModel>(fixtures::signature_of({"x"}, {"y"}),
                                              [this](std::span<const InferTensor* const> inputs, const auto&) {
                                                ++runs_;
                                                may_go_on_.wait(false);
                                                if (while_running_) while_running_();
                                                const float x = inputs[0]->tensor.data<float>()[0];
                                                check(x >= 0, "negative");
                                                RunResult result;
                                                result.outputs = {floats("y", {x * 2})};
                                                return result;
                                              }),
        config, options, metrics_);
  }

  InferResult run(float x) {
    FakeSink answer;
    version_->submit(request_of({floats("x", {x})}), answer);
    answer.wait();
    return answer.results().back();
  }

  ModelMetrics metrics_{"m", "1"};
  ResponseCache cache_{1 << 20};
  std::atomic<int> runs_{0};
  std::atomic<bool> may_go_on_{true};
  std::function<void()> while_running_;
  std::unique_ptr<ModelVersion> version_;
};

TEST_F(CachedModelTest, RunsOnceForTheSameInputs) {
  load();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(4).outputs[0].tensor.data<float>()[0], 8);
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(run(5).outputs[0].tensor.data<float>()[0], 10);
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(metrics_.counts().cache_hit.count, 2u);
  EXPECT_EQ(metrics_.counts().cache_miss.count, 2u);
  EXPECT_EQ(metrics_.counts().inference_count, 2u);
}

TEST_F(CachedModelTest, TheSameInputsAtOnceRunOnce) {
  load();
  may_go_on_ = false;
  std::array<FakeSink, 4> answers;
  const auto submit = [&](FakeSink& answer, int64_t deadline_ns = kNoDeadline) {
    InferRequest request = request_of({floats("x", {4})});
    request.deadline_ns = deadline_ns;
    version_->submit(std::move(request), answer);
  };
  const int64_t soon_ns = Clock::system().now_ns() + 3'600'000'000'000;
  std::jthread first([&] { submit(answers[0]); });  // a short model may run on the submitting thread
  while (runs_ == 0) std::this_thread::yield();
  submit(answers[1]);
  submit(answers[2]);
  EXPECT_EQ(metrics_.counts().cache_hit.count, 0u);
  // A cancelled request gets its response at once, although another one computes the same.
  answers[2].cancel();
  version_->record_cancelled();
  EXPECT_EQ(answers[2].wait().status.code(), absl::StatusCode::kCancelled);
  // A request with an earlier deadline does not wait for one that may take longer.
  std::jthread other([&] { submit(answers[3], soon_ns); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(answers[1].finals(), 0);
  may_go_on_ = true;
  may_go_on_.notify_all();
  for (const int i : {0, 1, 3}) {
    EXPECT_EQ(answers[static_cast<size_t>(i)].wait().outputs[0].tensor.data<float>()[0], 8);
  }
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(metrics_.counts().cache_hit.count, 1u);
}

TEST_F(CachedModelTest, ThoseThatWaitRunWhereTheFirstFails) {
  load();
  may_go_on_ = false;
  std::array<FakeSink, 3> answers;
  std::vector<std::jthread> threads;
  for (FakeSink& answer : answers) {
    threads.emplace_back([&] { version_->submit(request_of({floats("x", {-1})}), answer); });
    while (runs_ == 0) std::this_thread::yield();
  }
  may_go_on_ = true;
  may_go_on_.notify_all();
  for (FakeSink& answer : answers) {
    EXPECT_EQ(answer.wait().status.message(), "negative");
  }
  EXPECT_EQ(runs_, 3);
}

TEST_F(CachedModelTest, ThoseThatWaitedInVainRunSideBySide) {
  load(/*workers=*/2);
  std::atomic<int> order{0}, inside{0};
  while_running_ = [&] {
    if (order++ == 0) return;
    ++inside;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    while (inside < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  };
  may_go_on_ = false;
  std::array<FakeSink, 3> answers;
  for (FakeSink& answer : answers) {
    version_->submit(request_of({floats("x", {-1})}), answer);
    while (runs_ == 0) std::this_thread::yield();
  }
  EXPECT_EQ(runs_, 1);
  const auto start = std::chrono::steady_clock::now();
  may_go_on_ = true;
  may_go_on_.notify_all();
  for (FakeSink& answer : answers) EXPECT_EQ(answer.wait().status.message(), "negative");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(200));
}

TEST_F(CachedModelTest, DoesNotKeepFailures) {
  load();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(-1).status.message(), "negative");
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(cache_.size_bytes(), 0u);
}

TEST_F(CachedModelTest, ALoadBeginsWithNothing) {
  load();
  run(4);
  EXPECT_GT(cache_.size_bytes(), 0u);
  load();
  EXPECT_EQ(cache_.size_bytes(), 0u);
  run(4);
  EXPECT_EQ(runs_, 2);
}

TEST_F(CachedModelTest, InputsThatClientsCanChangeAreCopied) {
  load();
  FakeSink answer;
  InferRequest request = request_of({floats("x", {1})});
  request.inputs[0].is_shared = true;
  version_->submit(std::move(request), answer);
  answer.wait();
  EXPECT_EQ(metrics_.counts().copied_bytes, sizeof(float));
  EXPECT_EQ(run(1).outputs[0].tensor.data<float>()[0], 2);
  EXPECT_EQ(runs_, 1);
}

TEST_F(CachedModelTest, OnlyModelsThatAskForItAreKept) {
  ModelVersion::Options options;
  options.cache = &cache_;
  ModelMetrics metrics("other", "1");
  ModelVersion plain("other", 1, fixtures::identity_model(), {}, options, metrics);
  for (int i = 0; i < 2; ++i) {
    FakeSink answer;
    plain.submit(request_of({floats("x", {4})}), answer);
    EXPECT_TRUE(answer.wait().status.ok());
  }
  EXPECT_EQ(metrics.counts().inference_count, 2u);
  EXPECT_EQ(metrics.counts().cache_miss.count, 0u);
  EXPECT_EQ(cache_.size_bytes(), 0u);
}

// Keeps its requests until the test responds.
struct HeldStrategy final : ExecutionStrategy {
  explicit HeldStrategy(std::vector<InferSink*>& held) : sinks(held) {}
  void submit(InferRequest&&, InferSink& sink) override { sinks.push_back(&sink); }
  void record_cancelled() override {}
  void stop() override {}
  std::vector<InferSink*>& sinks;
};

class CachedStrategyTest : public ::testing::Test {
 protected:
  void submit(
      FakeSink& sink, const std::function<void(InferRequest&)>& change = [](InferRequest&) {}) {
    InferRequest request = request_of({floats("x", {4})});
    request.deadline_ns = 1000;
    change(request);
    path_->submit(std::move(request), sink);
  }
  void answer(size_t run, absl::Status status = absl::OkStatus(), ParameterMap parameters = {}) {
    InferResult result;
    result.status = std::move(status);
    result.parameters = std::move(parameters);
    if (result.status.ok()) result.outputs = {floats("y", {7})};
    held_.at(run)->respond(std::move(result), /*is_final=*/true);
  }

  ModelMetrics metrics_{"m", "1"};
  ResponseCache cache_{1 << 20};
  std::vector<InferSink*> held_;  // what runs
  std::unique_ptr<ExecutionStrategy> path_ =
      make_cached_strategy(std::make_unique<HeldStrategy>(held_), cache_, metrics_);
};

TEST_F(CachedStrategyTest, OnlyRequestsThatWouldNotBeAnsweredSoonerWait) {
  FakeSink first, same, later, sooner, timeout, priority;
  submit(first);
  submit(same);
  submit(later, [](InferRequest& request) { request.deadline_ns = 1001; });
  EXPECT_EQ(held_.size(), 1u);
  submit(sooner, [](InferRequest& request) { request.deadline_ns = 999; });
  EXPECT_EQ(held_.size(), 2u);
  submit(timeout, [](InferRequest& request) { request.queue_timeout_us = 5; });
  EXPECT_EQ(held_.size(), 3u);
  submit(priority, [](InferRequest& request) { request.priority = 2; });
  EXPECT_EQ(held_.size(), 4u);
  for (size_t run = 4; run-- > 0;) answer(run);
  for (FakeSink* sink : {&first, &same, &later, &sooner, &timeout, &priority}) {
    EXPECT_EQ(sink->wait().outputs.at(0).name, "y");
  }
  EXPECT_EQ(held_.size(), 4u);
}

// Others still wait for the first request after another one with the same inputs has ended.
TEST_F(CachedStrategyTest, OthersGoOnToWaitForTheFirst) {
  FakeSink first, sooner, waiting, cancelled;
  submit(first);
  submit(sooner, [](InferRequest& request) { request.deadline_ns = 999; });
  answer(1, absl::InternalError("no"));
  EXPECT_EQ(sooner.wait().status.message(), "no");
  submit(waiting);
  submit(cancelled);
  EXPECT_EQ(held_.size(), 2u);
  cancelled.cancel();
  path_->record_cancelled();
  EXPECT_EQ(cancelled.wait().status.code(), absl::StatusCode::kCancelled);
  answer(0);
  EXPECT_EQ(waiting.wait().outputs.at(0).name, "y");
}

TEST_F(CachedStrategyTest, AnswersWithParametersAreNotKept) {
  FakeSink first, second;
  submit(first);
  answer(0, absl::OkStatus(), {{"sequence_id", int64_t{3}}});
  EXPECT_EQ(first.wait().parameters.size(), 1u);
  EXPECT_EQ(cache_.size_bytes(), 0u);
  submit(second);
  ASSERT_EQ(held_.size(), 2u);
  answer(1);
  EXPECT_GT(cache_.size_bytes(), 0u);
  EXPECT_EQ(second.wait().outputs.size(), 1u);
}

TEST(CacheOptions, ReadsTheFlags) {
  const auto bytes = [](std::vector<std::string> configs, uint64_t legacy = 0) {
    return CacheOptions{.configs = std::move(configs), .legacy_bytes = legacy}.max_bytes();
  };
  EXPECT_EQ(bytes({}), 0u);
  EXPECT_EQ(bytes({"local,size=1048576"}), 1048576u);
  EXPECT_EQ(bytes({}, 99), 99u);
  EXPECT_THROW(bytes({"local,size=1"}, 2), Error);
  for (const char* wrong : {"local", "local,size", "local,size=", "local,size=x", "local,size=1k", "local,bytes=1",
                            "redis,host=localhost", "", "size=3"}) {
    EXPECT_THROW(bytes({wrong}), Error) << wrong;
  }
}

}  // namespace
}  // namespace tensord::server::response_cache_test
