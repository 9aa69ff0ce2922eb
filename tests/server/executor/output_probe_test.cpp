#include "server/executor/warmup/output_probe.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"

namespace tensord::server {
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

  // The signature of a model that answers so, given its input.
  Signature probe(std::function<Outputs(const InferTensor&)> function) {
    const testing::FakeModel model(signature_, [&](std::span<const InferTensor* const> inputs, const auto&) {
      ++runs_;
      RunResult result;
      result.outputs = function(*inputs[0]);
      return result;
    });
    ModelConfig config;
    config.max_batch_size = signature_.max_batch_size;
    Signature out = signature_;
    complete_outputs(model, make_warmup(signature_, config, "m"), 1, out);
    return out;
  }

  Signature signature_ = testing::signature_of({"x"}, {"y", "z"});
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

TEST_F(OutputProbeTest, AFailureIsLeftToTheWarmUp) {
  const Signature seen = probe([](const InferTensor&) -> Outputs { fail(ErrorCode::kScriptRaised, "not zeros"); });
  EXPECT_FALSE(seen.outputs[0].datatype);
}

}  // namespace
}  // namespace tensord::server
