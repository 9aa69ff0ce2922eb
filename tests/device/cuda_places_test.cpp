// Running extremes, and elements that go to places which indices, masks and strides name, on CUDA's devices, compared
// with the processor's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/ops/run.h"
#include "core/tensor/device_runtime.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_places_test {
namespace {

using namespace cuda_tests;
using ops::call_by_name;
using ops::Value;
using CudaPlaces = CudaDevice;

// Without negative zeros, of which sums and extremes may keep either.
Tensor numbers_of(const Dims& sizes, DType dtype, int64_t kinds = 23) {
  const Tensor out = values_of(sizes, dtype, kinds);
  return is_floating(dtype) ? call_by_name("aten::add.Scalar", out, 0.0) : out;
}
Value ints(const Dims& values) { return ops::make_int_list(values); }
// Indices below `count`, many of them equal.
Tensor indices_of(const Dims& sizes, int64_t count, DType dtype = DType::kInt64) {
  const Tensor out = Tensor::empty(sizes, DType::kInt64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<int64_t>()[i] = i * i % 1009 % count;
  return out.to(dtype);
}

TEST_F(CudaPlaces, RunningExtremesAsOnTheHost) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt64, DType::kUInt8}) {
    for (const int64_t length : {1, 31, 33, 130, 1100}) {
      const Tensor lines = values_of({2, length}, dtype, 200);
      for (const char* op : {"aten::cummax", "aten::cummin"}) {
        expect_as_on_host(op, {lines, 1});
        expect_as_on_host(op, {turned(lines), 0});
      }
      if (is_floating(dtype))
        expect_as_on_host("aten::logcumsumexp", {turned(numbers_of({2, length}, dtype)), 0}, 1e-6);
    }
  }
}

TEST_F(CudaPlaces, ReductionsAtIndicesAsOnTheHost) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kUInt8}) {
    const Tensor self = numbers_of({3, 20}, dtype), source = numbers_of({3, 90}, dtype, 29),
                 index = indices_of({3, 90}, 20);
    const double tolerance = dtype == DType::kFloat16 ? 1e-2 : is_floating(dtype) ? 1e-5 : 0;
    for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
      for (const bool include_self : {false, true})
        expect_as_on_host("aten::scatter_reduce.two", {self, 1, index, source, reduce, include_self}, tolerance);
    }
    for (const char* reduce : {"add", "multiply"})
      expect_as_on_host("aten::scatter.reduce", {self, -1, index, source, reduce}, tolerance);
  }
}

TEST_F(CudaPlaces, MasksAndRepeatsAsOnTheHost) {
  const Tensor x = values_of({4, 50}, DType::kFloat32), mask = call_by_name("aten::gt.Scalar", x, 1.0);
  expect_as_on_host("aten::masked_scatter", {x, mask, values_of({300}, DType::kFloat32, 41)});
  expect_as_on_host("aten::masked_scatter", {x, call_by_name("aten::zeros_like", mask), values_of({0}, x.dtype())});
  const Tensor counts = indices_of({50}, 5);
  expect_as_on_host("aten::repeat_interleave.self_Tensor", {x, counts, 1});
  expect_as_on_host("aten::repeat_interleave.Tensor", {indices_of({50}, 5, DType::kInt32)});
  const auto error_of = [](const char* op, const std::vector<Value>& arguments) {
    return message_of([&] { called(ops::get_op(op), arguments, kGpu); });
  };
  EXPECT_EQ(error_of("aten::masked_scatter", {x, mask, values_of({2}, DType::kFloat32)}),
            "aten::masked_scatter: masked_scatter_: expected more elements in source");
  EXPECT_EQ(error_of("aten::repeat_interleave.Tensor", {call_by_name("aten::sub.Scalar", counts, 1)}),
            "aten::repeat_interleave: repeats can not be negative");
  const Tensor most = call_by_name("aten::full_like", counts, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(error_of("aten::repeat_interleave.Tensor", {most}), "aten::repeat_interleave: repeats can not be negative");
}

TEST_F(CudaPlaces, StridesAndGroupsAsOnTheHost) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const double tolerance = dtype == DType::kFloat32 ? 1e-6 : 2e-2;
    expect_as_on_host("aten::unfold_backward", {numbers_of({3, 9, 4}, dtype, 40), ints({3, 20}), 1, 4, 2}, tolerance);
    const Tensor x = numbers_of({4, 5}, dtype, 40);
    expect_as_on_host("tensord::as_strided_scatter_add",
                      {x, ints({3, 7}), ints({7, 1}), 2, ints({4, 5}), ints({3, 1}), 3}, tolerance);
    expect_as_on_host("tensord::as_strided_gather", {x, ints({0, 2}), 1, ints({6}), ints({1}), 0}, tolerance);
    const Tensor rows = numbers_of({40, 6}, dtype, 60), groups = indices_of({40}, 9);
    expect_as_on_host("tensord::gather_rows", {groups, rows});
    expect_as_on_host("tensord::scatter_rows", {groups, rows, 9}, tolerance);
    for (const bool is_log : {false, true})
      expect_as_on_host("tensord::group_softmax", {groups, rows, 10, is_log}, tolerance);
  }
}

TEST_F(CudaPlaces, MantissasAndPowersAsOnTheHost) {
  const Tensor given = Tensor::empty(Dims{12}, DType::kFloat64);
  const double numbers[] = {0, -0.0, 1, -3.75, 0.5, 1e300, 5e-324, -2.2e-310, 1e-40, INFINITY, -INFINITY, NAN};
  std::copy(std::begin(numbers), std::end(numbers), given.data<double>());
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16})
    expect_as_on_host("aten::frexp.Tensor", {given.to(dtype)});
}

// Lengths and counts of rows lie on the host, as in PyTorch.
TEST_F(CudaPlaces, PackedSequencesHaveTheirCountsOnTheHost) {
  const Tensor lengths = Tensor::empty(Dims{3}, DType::kInt64);
  const int64_t given[] = {6, 4, 1};
  std::copy(std::begin(given), std::end(given), lengths.data<int64_t>());
  const Tensor x = call_by_name("aten::nan_to_num", numbers_of({6, 3, 4}, DType::kFloat32), 0.0, 1.0, 1.0);
  const std::vector<Tensor> weights{numbers_of({5, 4}, x.dtype(), 40), numbers_of({5, 5}, x.dtype(), 40)};
  const auto run = [&](Device device) {
    const auto there = [&](const Tensor& one) {
      return call_by_name("aten::tanh", call_by_name("aten::nan_to_num", one.to(device), 0.0, 1.0, 1.0));
    };
    const ops::Op &pack = ops::get_op("aten::_pack_padded_sequence"), &rnn = ops::get_op("aten::rnn_tanh.data"),
                  &pad = ops::get_op("aten::_pad_packed_sequence");
    const std::vector<Value> packed = ops::run(pack, ops::bind(pack, {x.to(device), lengths, false}));
    EXPECT_EQ(packed[0].to_tensor().device(), device);
    EXPECT_TRUE(packed[1].to_tensor().device().is_host());
    const Value parameters = ops::make_tensor_list({there(weights[0]), there(weights[1])});
    const Tensor state = call_by_name("aten::zeros_like", there(numbers_of({1, 3, 5}, x.dtype())));
    const std::vector<Value> layer =
        ops::run(rnn, ops::bind(rnn, {packed[0], packed[1], state, parameters, false, 1, 0.0, false, false}));
    return ops::run(pad, ops::bind(pad, {layer[0], packed[1], true, 0.5, 7}))[0].to_tensor();
  };
  EXPECT_EQ(difference(run(kGpu).to(Device{}), run({}), 1e-6), "");
}

// Empty bags, indices behind the last offset, padding, a table whose rows are columns.
TEST_F(CudaPlaces, BagsAsOnTheHost) {
  const Tensor offsets = Tensor::empty(Dims{6}, DType::kInt64);
  const int64_t begins[] = {0, 0, 7, 12, 12, 30};
  std::copy(std::begin(begins), std::end(begins), offsets.data<int64_t>());
  const Tensor indices = indices_of({40}, 9);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    const Tensor table = turned(numbers_of({5, 9}, DType::kFloat64, 11).to(dtype));
    const Tensor weights = call_by_name("aten::nan_to_num", numbers_of({40}, dtype, 60), 0.0, 1.0, 1.0);
    const double tolerance = dtype == DType::kFloat16 ? 1e-2 : 1e-6;
    for (const int64_t mode : {0, 1, 2}) {
      for (const bool has_last : {false, true}) {
        const std::vector<Value> plain{table, indices, offsets, false, mode, false, Value(), has_last};
        expect_as_on_host("aten::embedding_bag", plain, tolerance);
        std::vector<Value> padded = plain;
        padded[1] = indices.to(DType::kInt32);
        padded.push_back(-2);
        expect_as_on_host("aten::embedding_bag.padding_idx", padded, tolerance);
      }
    }
    expect_as_on_host("aten::embedding_bag", {table, indices, offsets, false, 0, false, weights, true}, tolerance);
  }
}

TEST_F(CudaPlaces, WrongBagsAreErrors) {
  const auto error_of = [](std::vector<int64_t> begins, int64_t index) {
    const Tensor offsets = Tensor::empty(Dims{static_cast<int64_t>(begins.size())}, DType::kInt64);
    std::copy(begins.begin(), begins.end(), offsets.data<int64_t>());
    const Tensor indices = call_by_name("aten::full_like", indices_of({8}, 1), index);
    called(ops::get_op("aten::embedding_bag"), {numbers_of({5, 3}, DType::kFloat32), indices, offsets}, kGpu);
    const std::string message = message_of([] { synchronize(kGpu); });
    EXPECT_EQ(message.substr(0, message.find(' ')), message.empty() ? "" : "aten::embedding_bag:");
    return message.substr(message.find(' ') + 1);
  };
  EXPECT_EQ(error_of({0, 4, 8}, 4), "");
  EXPECT_EQ(error_of({1, 4}, 0),
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            "got 1");
  EXPECT_EQ(error_of({0, 9}, 0), "offsets[-1] can not be greater than input's length 8 but got offsets[-1] of 9");
  EXPECT_EQ(error_of({0, 5, 4}, 0), "embedding_bag: offsets must not decrease, but got 4 after 5");
  EXPECT_EQ(error_of({0}, 5), "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be 5");
  EXPECT_EQ(error_of({0}, -1), "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be -1");
}

TEST_F(CudaPlaces, RowsAreScaledDownToTheirNormAsOnTheHost) {
  for (const double norm_type : {1.0, 2.0, HUGE_VAL}) {
    const Tensor table = call_by_name("aten::nan_to_num", numbers_of({9, 5}, DType::kFloat32, 60), 0.0, 1.0, 1.0);
    expect_as_on_host("aten::embedding_renorm_", {table, indices_of({30}, 7), 3.0, norm_type}, 1e-6);
  }
}

}  // namespace
}  // namespace tensord::cuda_places_test
