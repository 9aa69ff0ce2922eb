#include "server/executor/warmup/output_probe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"

namespace tensord::server::output_probe_test {
namespace {

using Outputs = std::vector<InferTensor>;

InferTensor tensor(const std::string& name, Dims shape, DType dtype = DType::kFloat32) {
  InferTensor out;
  out.name = name;
  out.datatype = from_dtype(dtype);
  out.shape = std::move(shape);
  out.tensor = Tensor::empty(out.shape, dtype);
  return out;
}

class OutputProbeTest : public ::testing::Test {
 protected:
  OutputProbeTest() {
    signature_.max_batch_size = 8;
    signature_.inputs[0].datatype = DataType::kFp32;
    signature_.inputs[0].shape = Dims{-1, 3};
  }

  // The probed signature of a model with this function. Without warm-up requests it gets zeros.
  Signature probe(std::function<Outputs(const InferTensor&)> function, std::vector<WarmupRequest> requests = {}) {
    const fixtures::FakeModel model(signature_, [&](std::span<const InferTensor* const> inputs, const auto&) {
      ++runs_;
      RunResult result;
      result.outputs = function(*inputs[0]);
      return result;
    });
    ModelConfig config;
    config.max_batch_size = signature_.max_batch_size;
    Signature out = signature_;
    complete_outputs(model, requests.empty() ? make_warmup(signature_, config, "m") : requests, 1, out);
    return out;
  }
  static WarmupRequest rows(int64_t count, int64_t size) {
    return {.name = "rows", .inputs = {tensor("x", {count, size})}, .input_indices = {0}, .batch_size = count};
  }

  Signature signature_ = fixtures::signature_of({"x"}, {"y", "z"});
  int runs_ = 0;
};

TEST_F(OutputProbeTest, ShowsTypesAndShapes) {
  const Signature seen = probe([](const InferTensor& x) {
    return Outputs{tensor("y", {x.shape[0], 5, 7}), tensor("z", {x.shape[0]}, DType::kInt64)};
  });
  EXPECT_EQ(seen.outputs[0].datatype, DataType::kFp32);
  EXPECT_EQ(seen.outputs[0].shape, (Dims{-1, 5, 7}));
  EXPECT_EQ(seen.outputs[1].datatype, DataType::kInt64);
  EXPECT_EQ(seen.outputs[1].shape, (Dims{-1}));
  EXPECT_EQ(runs_, 2);
}

TEST_F(OutputProbeTest, WhatHangsOnTheDataIsOpen) {
  signature_.max_batch_size = 0;
  signature_.inputs[0].shape = Dims{16};
  const Signature seen = probe([](const InferTensor& x) {
    int64_t found = 2;
    for (int64_t i = 0; i < 16; ++i) found += x.tensor.data<float>()[i] > 0;
    return Outputs{tensor("y", {found, 4}), tensor("z", {0, 3})};
  });
  EXPECT_EQ(seen.outputs[0].shape, (Dims{-1, 4}));
  EXPECT_EQ(seen.outputs[1].shape, (Dims{-1, 3}));
}

TEST_F(OutputProbeTest, OutputsWithoutTheBatchStayUnknown) {
  const Signature seen = probe([](const InferTensor& x) {
    return Outputs{tensor("y", {4}), x.shape[0] == 1 ? tensor("z", {1}) : tensor("z", {x.shape[0]}, DType::kInt32)};
  });
  EXPECT_EQ(seen.outputs[0].datatype, DataType::kFp32);
  EXPECT_FALSE(seen.outputs[0].shape);
  EXPECT_FALSE(seen.outputs[1].datatype);
}

TEST_F(OutputProbeTest, WhatIsConfiguredStays) {
  signature_.outputs[0].datatype = DataType::kInt8;
  signature_.outputs[0].shape = Dims{-1, 9};
  const Signature seen = probe([](const InferTensor& x) {
    return Outputs{tensor("y", {x.shape[0], 5}), tensor("z", {x.shape[0], 5})};
  });
  EXPECT_EQ(seen.outputs[0].datatype, DataType::kInt8);
  EXPECT_EQ(seen.outputs[0].shape, (Dims{-1, 9}));
  EXPECT_EQ(seen.outputs[1].shape, (Dims{-1, 5}));
}

TEST_F(OutputProbeTest, OneThatIsHalfKnownIsCompleted) {
  const auto function = [](const InferTensor& x) {
    return Outputs{tensor("y", {x.shape[0], 5}), tensor("z", {x.shape[0], 7}, DType::kInt64)};
  };
  for (TensorSpec& output : signature_.outputs) output.datatype = DataType::kFp32;
  Signature seen = probe(function);
  EXPECT_EQ(seen.outputs[0].shape, (Dims{-1, 5}));
  EXPECT_EQ(seen.outputs[1].shape, (Dims{-1, 7}));
  EXPECT_EQ(seen.outputs[1].datatype, DataType::kFp32) << "as it was configured";
  for (TensorSpec& output : signature_.outputs) {
    output.datatype.reset();
    output.shape = Dims{-1, 9};
  }
  seen = probe(function);
  EXPECT_EQ(seen.outputs[0].datatype, DataType::kFp32);
  EXPECT_EQ(seen.outputs[1].datatype, DataType::kInt64);
  EXPECT_EQ(seen.outputs[1].shape, (Dims{-1, 9}));
  for (TensorSpec& output : signature_.outputs) output.datatype = DataType::kFp32;
  runs_ = 0;
  probe(function);
  EXPECT_EQ(runs_, 0) << "nothing is open";
}

TEST_F(OutputProbeTest, DoesNotRunWhatWouldTellNothing) {
  const auto nothing = [](const InferTensor&) { return Outputs{}; };
  signature_.keeps_state = true;
  probe(nothing);
  signature_.keeps_state = false;
  signature_.inputs[0].shape = Dims{-1, -1};
  probe(nothing);
  EXPECT_EQ(runs_, 0);
}

TEST_F(OutputProbeTest, ShapesNeedTwoBatchesAndInputsOfKnownSizes) {
  const auto same = [](const InferTensor& x) { return Outputs{tensor("y", x.shape), tensor("z", {x.shape[0]})}; };
  const auto seen = [&](std::vector<WarmupRequest> requests) { return probe(same, std::move(requests)).outputs[0]; };
  EXPECT_EQ(seen({rows(1, 3), rows(2, 3)}).shape, (Dims{-1, 3}));
  EXPECT_FALSE(seen({rows(2, 3), rows(2, 3)}).shape);
  EXPECT_FALSE(seen({rows(2, 3)}).shape);
  EXPECT_EQ(seen({rows(2, 3)}).datatype, DataType::kFp32);
  signature_.inputs[0].shape = Dims{-1, 0};
  EXPECT_EQ(seen({rows(1, 0), rows(2, 0)}).shape, (Dims{-1, -1}));
  for (const std::optional<Dims>& open : {std::optional<Dims>(Dims{-1, -1}), std::optional<Dims>()}) {
    signature_.inputs[0].shape = open;
    EXPECT_FALSE(seen({rows(1, 3), rows(2, 3)}).shape);
    EXPECT_EQ(seen({rows(1, 3), rows(2, 3)}).datatype, DataType::kFp32);
  }
  signature_.max_batch_size = 0;
  signature_.inputs[0].shape = Dims{-1, 3};
  EXPECT_FALSE(seen({rows(1, 3)}).shape) << "without a batch the first size is one like others";
  signature_.inputs[0].shape = Dims{2, 3};
  EXPECT_EQ(seen({rows(2, 3)}).shape, (Dims{2, 3}));
}

TEST_F(OutputProbeTest, WhatDoesNotComeEachTimeStaysUnknown) {
  const Signature once = probe([](const InferTensor& x) {
    Outputs out{tensor("y", {x.shape[0], 5})};
    if (x.shape[0] == 1) out.push_back(tensor("z", {1, 7}));
    return out;
  });
  EXPECT_EQ(once.outputs[0].shape, (Dims{-1, 5}));
  EXPECT_FALSE(once.outputs[1].datatype);
  const Signature never = probe([](const InferTensor& x) { return Outputs{tensor("y", {x.shape[0]})}; });
  EXPECT_EQ(never.outputs[0].shape, (Dims{-1}));
  EXPECT_FALSE(never.outputs[1].datatype);
}

TEST_F(OutputProbeTest, RanksThatChangeStayUnknown) {
  const Signature seen = probe([](const InferTensor& x) {
    return Outputs{x.shape[0] == 1 ? tensor("y", {1, 1}) : tensor("y", {x.shape[0]}), tensor("z", {})};
  });
  EXPECT_EQ(seen.outputs[0].datatype, DataType::kFp32);
  EXPECT_FALSE(seen.outputs[0].shape);
  EXPECT_EQ(seen.outputs[1].datatype, DataType::kFp32);
  EXPECT_FALSE(seen.outputs[1].shape);
}

TEST_F(OutputProbeTest, ASlowModelRunsOnce) {
  const Signature seen = probe([](const InferTensor& x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1010));
    return Outputs{tensor("y", {x.shape[0]}), tensor("z", {x.shape[0]})};
  });
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(seen.outputs[0].datatype, DataType::kFp32);
  EXPECT_FALSE(seen.outputs[0].shape);
}

TEST_F(OutputProbeTest, AFailureIsLeftToTheWarmUp) {
  const Signature seen = probe([](const InferTensor&) -> Outputs { fail(ErrorCode::kScriptRaised, "not zeros"); });
  EXPECT_FALSE(seen.outputs[0].datatype);
}

}  // namespace
}  // namespace tensord::server::output_probe_test
