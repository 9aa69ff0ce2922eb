// Sorting and counting on CUDA's devices, compared with the processor's: lines longer than a tile, many equal values,
// NaN and both zeros.
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/run.h"
#include "core/tensor/device_runtime.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_sort_test {
namespace {

using namespace cuda_tests;
using ops::call_by_name;
using ops::Value;
using CudaSort = CudaDevice;

TEST_F(CudaSort, LinesAsOnTheHost) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64, DType::kUInt8}) {
    const Tensor lines = values_of({3, 301}, dtype), columns = turned(values_of({3, 301}, dtype));
    for (const bool descending : {false, true}) {
      expect_as_on_host("aten::sort.stable", {lines, true, -1, descending});
      expect_as_on_host("aten::sort", {columns, 0, descending});
      expect_as_on_host("aten::argsort", {lines, 0, descending});
    }
    for (const char* op : {"aten::median.dim", "aten::nanmedian.dim", "aten::mode"}) {
      expect_as_on_host(op, {lines, 1, false});
      expect_as_on_host(op, {columns, 0, true});
    }
    expect_as_on_host("aten::kthvalue", {columns, 200, 0});
    expect_as_on_host("aten::median", {lines});
  }
}

TEST_F(CudaSort, LengthsAroundTilesAndMerges) {
  for (const int64_t length : {0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 97, 1025})
    expect_as_on_host("aten::sort.stable", {values_of({2, length}, DType::kFloat32), true, -1, false});
}

TEST_F(CudaSort, TopkGivesPositionsOfItsValues) {
  const Tensor x = values_of({4, 200}, DType::kFloat32);
  for (const bool largest : {false, true}) {
    const ops::Op& topk = ops::get_op("aten::topk");
    const std::vector<Value> got = called(topk, {x, 7, -1, largest}, kGpu),
                             expected = called(topk, {x, 7, -1, largest}, {});
    const Tensor values = got[0].to_tensor().to(Device{}), places = got[1].to_tensor().to(Device{});
    const auto without_signs = [](const Tensor& zeros) { return call_by_name("aten::add.Scalar", zeros, 0.0); };
    EXPECT_EQ(difference(without_signs(values), without_signs(expected[0].to_tensor())), "");
    EXPECT_EQ(difference(call_by_name("aten::gather", x, -1, places), values), "");
  }
}

TEST_F(CudaSort, DistinctValuesAsOnTheHost) {
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBool}) {
    // On the host each zero of a different sign may stand for both.
    const Tensor given = values_of({3, 150}, dtype, 40);
    const Tensor x = is_floating(dtype) ? call_by_name("aten::add.Scalar", given, 0.0) : given;
    expect_as_on_host("aten::_unique2", {x, true, true, true});
    expect_as_on_host("aten::_unique", {x, true, true});
    expect_as_on_host("aten::unique_consecutive", {x, true, true});
    expect_as_on_host("aten::unique_consecutive", {x, true, true, 0});
  }
}

TEST_F(CudaSort, PlacesAndCountsAsOnTheHost) {
  const Tensor values = values_of({2, 70}, DType::kFloat32), tests = values_of({90}, DType::kFloat32, 14);
  const Tensor steps = call_by_name("aten::linspace", -3.0, 6.0, 50), whole = values_of({400}, DType::kFloat64, 30);
  const Tensor positive =
      call_by_name("aten::abs", call_by_name("aten::nan_to_num", whole, 0.0, 1.0, 1.0)).to(DType::kInt64);
  const Tensor weights = values_of({400}, DType::kFloat32, 5000);
  for (const bool right : {false, true}) {
    expect_as_on_host("aten::bucketize.Tensor", {values, steps, right, right});
    expect_as_on_host("aten::searchsorted.Tensor", {steps, values, right, right});
  }
  expect_as_on_host("aten::bincount", {positive});
  expect_as_on_host("aten::bincount", {positive, call_by_name("aten::nan_to_num", weights, 0.0, 1.0, 1.0), 40});
  expect_as_on_host("aten::one_hot", {positive, 30});
  expect_as_on_host("aten::histc", {call_by_name("aten::nan_to_num", values, 0.0, 1.0, 1.0), 13});
  expect_as_on_host("aten::histc", {values, 13, -2.0, 5.0});
  for (const bool invert : {false, true}) expect_as_on_host("aten::isin.Tensor_Tensor", {values, tests, false, invert});
}

TEST_F(CudaSort, HistogramsAsOnTheHost) {
  const Tensor x = values_of({50, 3}, DType::kFloat32, 37),
               finite = call_by_name("aten::nan_to_num", x, 0.0, 2.0, -2.0);
  const Tensor steps = call_by_name("aten::linspace", -3.0, 6.0, 9),
               weight = call_by_name("aten::linspace", 0.0, 49.0, 50);
  const Value counts = ops::make_int_list(Dims{4, 2, 5});
  expect_as_on_host("aten::histogram.bins_tensor", {x, steps});
  expect_as_on_host("aten::histogram.bin_ct", {finite, 11});
  expect_as_on_host("aten::_histogramdd_from_bin_cts", {finite, counts, Value(), weight, false});
  expect_as_on_host("aten::_histogramdd_from_bin_cts", {finite, counts, Value(), weight, true}, 1e-6);
}

TEST_F(CudaSort, WrongNumbersAreRefused) {
  const auto error_of = [](const char* op, const std::vector<Value>& arguments) {
    return message_of([&] { called(ops::get_op(op), arguments, kGpu); });
  };
  const Tensor negative = Tensor::scalar(int64_t{-1}).as_view({1}, {1}, 0);
  const Tensor steps = call_by_name("aten::linspace", 0.0, 1.0, 5);
  const Tensor order = call_by_name("aten::full_like", steps.to(DType::kInt64), 5);
  EXPECT_EQ(error_of("aten::bincount", {negative}),
            "aten::bincount: bincount only supports 1-d non-negative integral inputs.");
  EXPECT_EQ(error_of("aten::one_hot", {negative, 3}), "aten::one_hot: Class values must be non-negative.");
  EXPECT_EQ(error_of("aten::searchsorted.Tensor", {steps, steps, false, false, Value(), order}),
            "aten::searchsorted: torch.searchsorted(): sorter index out of range");
}

}  // namespace
}  // namespace tensord::cuda_sort_test
