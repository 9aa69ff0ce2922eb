// Deterministic algorithms on CUDA's devices: sums in which the order of the threads shows without them have the same
// bits in every order. With TENSORD_CUDA naming the emulated devices' library, whose threads then come in other orders
// at each launch (TENSORD_CUDA_SEED).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/execution_context.h"
#include "core/ops/run.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_deterministic_test {
namespace {

using namespace cuda_tests;
using ops::Value;

using CudaDeterministic = CudaDevice;

class DeterministicScope : ContextPart<&ExecutionContext::numerics> {
 public:
  DeterministicScope() : ContextPart({.is_deterministic = true}) {}
};

// Of all magnitudes, so that each order of additions gives another sum.
Tensor magnitudes(const Dims& sizes, DType dtype = DType::kFloat32) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const auto x = static_cast<double>(i * i % 1009);
    out.data<double>()[i] = std::sin(x) * std::exp(std::fmod(x, 9.0));
  }
  return out.to(dtype);
}
Tensor few(const Dims& sizes, int64_t count) {
  const Tensor out = Tensor::empty(sizes, DType::kInt64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<int64_t>()[i] = i * i % 1009 % count;
  return out;
}
Value ints(const Dims& values) { return ops::make_int_list(values); }

struct OrderedCall {
  const char* op;
  std::vector<Value> arguments;
};
std::vector<OrderedCall> calls() {
  const Tensor x = magnitudes({4, 6}), rows = magnitudes({200, 6}), index = few({200}, 4), places = few({200, 6}, 4);
  const Tensor image = few({2, 3, 9, 9}, 7).to(DType::kFloat32);
  const ops::Op& pool = ops::get_op("aten::max_pool2d_with_indices");
  const std::vector<Value> pooled =
      ops::run(pool, ops::bind(pool, {image, ints({3, 3}), ints({1, 1}), ints({1, 1}), ints({1, 1}), false}));
  return {
      {"aten::index_add", {x, 0, index, rows, 0.7}},
      {"aten::index_add", {x.to(DType::kBFloat16), 0, index, rows.to(DType::kBFloat16), 0.7}},
      {"aten::index_copy", {x, 0, index, rows}},
      {"aten::index_put", {x, ops::make_list(ops::tensor_type(), {index}), rows, true}},
      {"aten::index_put", {x, ops::make_list(ops::tensor_type(), {index}), rows, false}},
      {"aten::scatter_add", {x, 0, places, rows}},
      {"aten::scatter.src", {x, 0, places, rows}},
      {"aten::scatter_reduce.two", {x, 0, few({9, 6}, 4), magnitudes({9, 6}), "prod", true}},
      {"aten::scatter_reduce.two", {x, 0, places, rows, "mean", false}},
      {"aten::embedding_dense_backward", {rows, index, 4, int64_t{-1}, true}},
      {"aten::bincount", {index, magnitudes({200}), int64_t{0}}},
      {"aten::max_pool2d_with_indices_backward",
       {magnitudes({2, 3, 9, 9}), image, ints({3, 3}), ints({1, 1}), ints({1, 1}), ints({1, 1}), false, pooled[1]}},
      {"aten::upsample_bilinear2d_backward", {magnitudes({2, 3, 17, 17}), ints({17, 17}), ints({2, 3, 4, 4}), false}},
  };
}
std::vector<Value> on_gpu(std::vector<Value> arguments) {
  for (Value& value : arguments) {
    if (value.is_tensor()) value = value.to_tensor().to(kGpu);
    if (!value.is_list() || value.to_list()->items.empty() || !value.to_list()->items[0].is_tensor()) continue;
    value = ops::make_list(ops::tensor_type(), {value.to_list()->items[0].to_tensor().to(kGpu)});
  }
  return arguments;
}
Tensor result_of(const OrderedCall& call) {
  const ops::Op& op = ops::get_op(call.op);
  return ops::run(op, ops::bind(op, on_gpu(call.arguments))).front().to_tensor().to(Device{});
}

TEST_F(CudaDeterministic, SumsHaveTheSameBitsInEveryOrder) {
  for (const OrderedCall& call : calls()) {
    SCOPED_TRACE(call.op);
    const ops::Op& op = ops::get_op(call.op);
    const Tensor expected = ops::run(op, ops::bind(op, call.arguments)).front().to_tensor();
    bool differs = false;
    const Tensor any = result_of(call);
    for (int i = 0; i < 12 && !differs; ++i) differs = difference(result_of(call), any) != "";
    EXPECT_TRUE(differs || !std::getenv("TENSORD_CUDA_SEED")) << "no order shows, so nothing is tested";

    const DeterministicScope scope;
    const Tensor first = result_of(call);
    for (int i = 0; i < 12; ++i) ASSERT_EQ(difference(result_of(call), first), "");
    const double tolerance = first.dtype() == DType::kBFloat16 ? 5e-2 : 1e-4;
    EXPECT_EQ(difference(first, expected, tolerance), "");
  }
}

TEST_F(CudaDeterministic, WhatCannotIsRefusedByName) {
  const Tensor image = magnitudes({1, 2, 4, 4}).to(kGpu), grid = magnitudes({1, 3, 3, 2}).to(kGpu),
               g = magnitudes({1, 2, 3, 3}).to(kGpu);
  const ops::Op& op = ops::get_op("aten::grid_sampler_2d_backward");
  const auto run = [&](bool of_input) {
    ops::run(op, ops::bind(op, {g, image, grid, int64_t{0}, int64_t{0}, false,
                                ops::make_list(ops::bool_type(), {of_input, true})}));
  };
  run(true);
  const DeterministicScope scope;
  run(false);
  EXPECT_NE(message_of([&] { run(true); }).find("grid_sampler_backward does not have a deterministic implementation"),
            std::string::npos);
}

}  // namespace
}  // namespace tensord::cuda_deterministic_test
