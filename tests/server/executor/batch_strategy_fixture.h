#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <list>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"

namespace tensord::server::fixtures {

using Inputs = std::span<const InferTensor* const>;

inline Tensor floats(const Dims& shape, const std::vector<float>& values) {
  Tensor out = Tensor::empty(shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.data<float>());
  return out;
}

inline std::vector<float> values_of(const Tensor& tensor) {
  const Tensor whole = tensor.contiguous();
  return {whole.data<float>(), whole.data<float>() + whole.numel()};
}

inline InferTensor named(const std::string& name, const Tensor& tensor) {
  InferTensor out;
  out.name = name;
  out.datatype = from_dtype(tensor.dtype());
  out.shape = tensor.sizes();
  out.tensor = tensor;
  return out;
}

inline InferRequest request_of(const InferTensor& input) {
  InferRequest request;
  request.batch_size = input.shape[0];
  request.inputs = {input};
  request.input_indices = {0};
  return request;
}

inline InferRequest request_of(const Dims& shape, const std::vector<float>& values) {
  return request_of(named("x", floats(shape, values)));
}

class Client final : public InferSink {
 public:
  void respond(InferResult result, bool is_final) override {
    EXPECT_TRUE(is_final);
    promise_.set_value(std::move(result));
  }
  bool is_cancelled() const override { return cancelled; }
  const InferResult& result() {
    if (!result_) result_ = promise_.get_future().get();
    return *result_;
  }
  std::atomic<bool> cancelled{false};

 private:
  std::promise<InferResult> promise_;
  std::optional<InferResult> result_;
};

// Doubles its input; a run whose first value is negative waits at the gate. Refuses rows with the value 13.
class BatchStrategyTest : public ::testing::Test {
 protected:
  BatchStrategyTest() {
    config.name = "m";
    config.max_batch_size = 8;
    config.dynamic_batching = DynamicBatchingConfig{};
  }

  void start(int workers = 1) {
    signature.max_batch_size = config.max_batch_size;
    model = std::make_unique<ModelVersion>(
        "m", 1,
        std::make_unique<FakeModel>(
            signature, [this](Inputs inputs, const auto& is_cancelled) { return run(inputs, is_cancelled); }),
        config, ModelVersion::Options{.workers = workers}, metrics.model("m", "1"));
  }

  RunResult run(Inputs inputs, const std::function<bool()>& is_cancelled) {
    const InferTensor& x = *inputs[0];
    {
      const std::lock_guard lock(mutex);
      shapes.push_back(x.shape);
      seen.push_back(x.tensor);
    }
    if (on_run) on_run();
    check(!takes_one || x.shape[0] == 1, "not together");
    Tensor out = x.tensor.clone();
    auto* data = out.data<float>();
    if (out.numel() > 0 && data[0] < 0) {
      entered.set_value();
      while (gate.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
        if (is_cancelled()) fail(ErrorCode::kCancelled, "the run was cancelled");
      }
    }
    for (int64_t i = 0; i < out.numel(); ++i) {
      check(data[i] != 13, "13 is refused");
      data[i] *= 2;
    }
    RunResult result;
    result.outputs = {named("OUTPUT__0", out)};
    return result;
  }

  // Occupies the worker until open(), so that later submissions are queued.
  void close() {
    entered = {};
    opened = {};
    gate = opened.get_future().share();
    submit(request_of({1, blocker_size}, std::vector<float>(static_cast<size_t>(blocker_size), -1)),
           blocker.emplace_back());
    entered.get_future().wait();
    const std::lock_guard lock(mutex);
    shapes.clear();
    seen.clear();
  }
  void open() { opened.set_value(); }

  void submit(InferRequest request, Client& client) {
    request.arrived_ns = Clock::system().now_ns();
    model->submit(std::move(request), client);
  }

  Metrics metrics{"test"};
  ModelConfig config;
  Signature signature = signature_of({"x"}, {"OUTPUT__0"});
  std::mutex mutex;
  bool takes_one = false;  // refuses batches
  std::function<void()> on_run;
  std::vector<Dims> shapes;  // of the runs' inputs
  std::vector<Tensor> seen;
  int64_t blocker_size = 1;
  std::list<Client> blocker;
  std::promise<void> entered, opened;
  std::shared_future<void> gate;
  std::unique_ptr<ModelVersion> model;  // last: its workers use the other members
};

}  // namespace tensord::server::fixtures
