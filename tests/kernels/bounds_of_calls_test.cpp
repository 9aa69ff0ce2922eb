// Each check of operators' arguments, and each limit: values at it are accepted, values beyond it are refused.
#include <cmath>
#include <limits>
#include <tuple>

#include "core/ops/registry.h"
#include "tests/support/operator_rows.h"

namespace tensord::bounds_of_calls_test {
namespace {

using namespace testing_rows;

Value doubles(const std::vector<double>& list) {
  std::vector<Value> items(list.begin(), list.end());
  return ops::make_list(ops::float_type(), std::move(items));
}

TEST(BoundsOfCalls, Indices) {
  const Tensor x = ones({3}), empty = longs({});
  const int64_t max = std::numeric_limits<int32_t>::max();
  const auto reduce = [](const Tensor& self, const Tensor& index, const Tensor& source) {
    return std::vector<Value>{self, 0, index, source, "amax", true};
  };
  const char *const kSearch = "aten::searchsorted.Tensor", *const kReduce = "aten::index_reduce";
  const Tensor byte = shaped(longs({1, 0, 1}).to(DType::kUInt8), {3});
  expect_rows({
      {"aten::index.Tensor", {x, tensors({byte})}, kTaken},
      {"aten::index.Tensor", {x, tensors({byte.to(DType::kBool)})}, kTaken},
      {"aten::index.Tensor", {x, tensors({byte.to(kFloat)})}, "must be long, byte or bool tensors"},
      {"aten::index.Tensor", {x, tensors({byte.to(DType::kInt16)})}, "must be long, byte or bool tensors"},
      {kReduce, reduce(x, longs({0}), ones({1})), kTaken},
      {kReduce, reduce(x, longs({0, 1}), ones({1})), "Number of indices (2) should be equal to source.size(dim): (1)"},
      {kReduce, reduce(x, longs({0}), ones({1, 1})), "Number of indices (1)"},
      {kReduce, reduce(ones({3, 2}), longs({0}), ones({1})), "Number of indices (1)"},
      {kReduce, reduce(ones({3, 2}), longs({0}), ones({1, 3})), "must have same slice shapes"},
      {kReduce, reduce(x, shaped(longs({0}), {1, 1}), ones({1})), "Index is supposed to be a vector"},
      {kSearch, {meta({max}), meta({1}), true}, kShapesOnly},
      {kSearch, {meta({max + 1}), meta({1}), true}, "the boundaries are too many for int32 results"},
      {kSearch, {meta({max + 1}), meta({1}), false}, kShapesOnly},
      {kSearch, {x, x, false, true, "right"}, kTaken},
      {kSearch, {x, x, false, false, "left"}, kTaken},
      {kSearch, {x, x, false, true, "left"}, "side and right can't be set to opposites"},
      {kSearch, {x, x, false, false, kNone, longs({0, 1, 3})}, "sorter index out of range"},
      {kSearch, {x, x, false, false, kNone, longs({0, 1, -1})}, "sorter index out of range"},
      {kSearch, {x, x, false, false, kNone, longs({0, 1, 2})}, kTaken},
      {kSearch, {ones({2, 3}), ones({2, 1})}, kTaken},
      {kSearch, {ones({2, 3}), ones({3, 1})}, "the first N-1 dimensions of boundaries tensor"},
      {kSearch, {ones({2, 3}), ones({2})}, "the first N-1 dimensions of boundaries tensor"},
      {kSearch, {ones({2, 3}), ones({})}, "can be a scalar only when boundaries tensor dimension is 1"},
      {kSearch, {x, ones({})}, kTaken},
      {kSearch, {x.to(DType::kBool), x}, "searchsorted"},
      {kSearch, {x, x.to(DType::kBool)}, "searchsorted"},
      {"aten::bincount", {longs({0, 2}), kNone, 0}, kTaken},
      {"aten::bincount", {longs({0, 2}), kNone, -1}, "minlength should be >= 0"},
      {"aten::bincount", {longs({0, 2}), ones({3}), 0}, "have the same length as input"},
      {"aten::bincount", {longs({INT64_MAX}), kNone, 0}, "is too large"},
      {"aten::bincount", {ones({2}), kNone, 0}, "1-d non-negative integral inputs"},
      {"aten::bincount", {shaped(longs({0, 2}), {1, 2}), kNone, 0}, "1-d non-negative integral inputs"},
      {"aten::bincount", {meta({2}, kLong), kNone, 0}, "the result's shape depends on the tensor's data"},
      {"aten::nonzero", {meta({2})}, "the result's shape depends on the tensor's data"},
      {"aten::one_hot", {empty, 1}, kTaken},
      {"aten::one_hot", {empty, -1}, "Can not infer total number of classes"},
      {"aten::one_hot", {longs({0, 2}), -1}, kTaken},
      {"aten::one_hot", {longs({0, 2}), 3}, kTaken},
      {"aten::one_hot", {longs({0, 2}), 2}, "must be smaller than num_classes"},
      {"aten::one_hot", {longs({0, -1}), 3}, "Class values must be non-negative"},
      {"aten::one_hot", {meta({2}, kLong), -1}, "the result's shape depends on the tensor's data"},
      {"aten::one_hot", {meta({2}, kLong), 0}, kTaken},
      {"aten::kthvalue", {x, 1}, kTaken},
      {"aten::kthvalue", {x, 3}, kTaken},
      {"aten::kthvalue", {x, 4}, "selected number k out of range"},
      {"aten::kthvalue", {x, 0}, "selected number k out of range"},
      {"aten::kthvalue", {ones({}), 1}, kTaken},
      {"aten::kthvalue", {ones({}), 2}, "selected number k out of range"},
  });
}

// For ranges larger than any memory: the number of elements, or the error.
std::string count_of(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = *ops::find_op(name);
  while (arguments.size() < op.schema.arguments.size()) arguments.emplace_back();
  try {
    return std::to_string(ops::infer(op, arguments).at(0).to_tensor().numel());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(BoundsOfCalls, Ranges) {
  const int64_t max = 1'000'000'000'000'000;
  const char *const kTo = "aten::arange", *const kSteps = "aten::arange.start_step";
  const std::string kTooLong = "invalid size, possible overflow?", kSign = "inconsistent with step sign";
  const std::tuple<const char*, std::vector<Value>, std::string> rows[] = {
      {kTo, {max}, "1000000000000000"},
      {kTo, {max + 1}, kTooLong},
      {kTo, {static_cast<double>(max)}, "1000000000000000"},
      {kTo, {static_cast<double>(max + 1)}, kTooLong},
      {kTo, {0}, "0"},
      {kTo, {-1}, kSign},
      {kSteps, {3, 3, -1}, "0"},
      {kSteps, {3, 4, -1}, kSign},
      {kSteps, {3, 4, 0}, "step must be nonzero"},
      {kSteps, {0.0, 1.0, 1e-300}, kTooLong},
      {kSteps, {0.0, INFINITY, 1.0}, "unsupported range"},
      {kSteps, {NAN, 1.0, 1.0}, "unsupported range"},
  };
  for (const auto& [name, arguments, said] : rows) EXPECT_THAT(count_of(name, arguments), ::testing::HasSubstr(said));
}

TEST(BoundsOfCalls, Views) {
  const Tensor x = ones({4}), image = ones({1, 1, 2, 2});
  const int64_t contiguous = 0, preserved = 1, last = 2, last3d = 3;
  const auto layout = [&](const Value& number) {
    return std::vector<Value>{x, kNone, number, kNone, kNone, false, false, kNone};
  };
  const auto pad = [](const Dims& sizes, const Dims& by, const char* mode, const Value& value = Value()) {
    return std::vector<Value>{ones(sizes), ints(by), mode, value};
  };
  const auto strided = [](const Tensor& of, const Dims& sizes, const Dims& strides, int64_t offset) {
    return std::vector<Value>{of, ints(sizes), ints(strides), offset};
  };
  const int64_t half = int64_t{1} << 62;
  expect_rows({
      {"aten::clone", {x, contiguous}, kTaken},
      {"aten::clone", {x, preserved}, kTaken},
      {"aten::clone", {x, int64_t{-1}}, "Unsupported memory format option -1"},
      {"aten::clone", {x, int64_t{4}}, "Unsupported memory format option 4"},
      {"aten::clone", {x, last}, "required rank 4 tensor"},
      {"aten::clone", {image, last}, kTaken},
      {"aten::clone", {image, last3d}, "required rank 5 tensor"},
      {"aten::clone", {ones({1, 1, 1, 2, 2}), last3d}, kTaken},
      {"aten::to.dtype_layout", layout(int64_t{0}), kTaken},
      {"aten::to.dtype_layout", layout(kNone), kTaken},
      {"aten::to.dtype_layout", layout(int64_t{1}), "only the strided layout is supported"},
      {"aten::pad", pad({2, 3}, {1, 1}, "reflect"), kTaken},
      {"aten::pad", pad({2, 3, 4}, {1, 1}, "reflect"), kTaken},
      {"aten::pad", pad({3}, {1, 1}, "reflect"), "padding of 2 values expects a 2D or 3D tensor"},
      {"aten::pad", pad({2, 2, 3, 4}, {1, 1}, "reflect"), "padding of 2 values expects a 2D or 3D tensor"},
      {"aten::pad", pad({2, 3}, {}, "reflect"), "padding of 0 values expects"},
      {"aten::pad", pad({1, 2, 3, 4, 2}, {1, 1, 1, 1, 1, 1}, "reflect"), kTaken},
      {"aten::pad", pad({1, 1, 2, 3, 4, 2}, {0, 0, 0, 0, 0, 0, 0, 0}, "reflect"), "padding of 8 values expects"},
      {"aten::pad", pad({2, 3}, {2, 0}, "reflect"), kTaken},
      {"aten::pad", pad({2, 3}, {3, 0}, "reflect"), "Padding size should be less than"},
      {"aten::pad", pad({2, 3}, {0, 3}, "reflect"), "Padding size should be less than"},
      {"aten::pad", pad({2, 3}, {3, 3}, "circular"), kTaken},
      {"aten::pad", pad({2, 3}, {4, 0}, "circular"), "wrapping around more than once"},
      {"aten::pad", pad({2, 3}, {0, 4}, "circular"), "wrapping around more than once"},
      {"aten::pad", pad({2, 0}, {1, 1}, "replicate"), "expected a non-empty dimension 1"},
      {"aten::pad", pad({2, 3}, {1, 1}, "replicate", 0.0), kTaken},
      {"aten::pad", pad({2, 3}, {1, 1}, "replicate", 1.0), "doesn't take in value argument"},
      {"aten::pad", pad({2, 3}, {1, 1}, "mirror"), "Unrecognized padding mode mirror"},
      {"aten::constant_pad_nd", {x, ints({-2, -2})}, kTaken},
      {"aten::constant_pad_nd", {x, ints({-2, -3})}, "resulted in a negative output size"},
      {"aten::constant_pad_nd", {x, ints({1, 1, 1, 1})}, "no more than twice the number of dimensions"},
      {"aten::constant_pad_nd", {ones({}), ints({})}, kTaken},
      {"aten::unflatten.int", {x, 0, ints({2, -1})}, kTaken},
      {"aten::unflatten.int", {x, 0, ints({2, -2})}, "invalid shape dimension -2"},
      {"aten::unflatten.int", {x, 0, ints({half, 4})}, "invalid shape dimension 4"},
      {"aten::unflatten.int", {x, 0, ints({-1, -1})}, "only one dimension can be inferred"},
      {"aten::unflatten.int", {x, 0, ints({3, -1})}, "don't multiply up to the size"},
      {"aten::unflatten.int", {x, 0, ints({0, -1})}, "don't multiply up to the size"},
      {"aten::unflatten.int", {ones({0}), 0, ints({0, -1})}, "don't multiply up to the size"},
      {"aten::unflatten.int", {ones({0}), 0, ints({2, -1})}, kTaken},
      {"aten::split.Tensor", {ones({0}), 0}, kTaken},
      {"aten::split.Tensor", {x, 0}, "split_size can only be 0 if dimension size is 0"},
      {"aten::combinations", {meta({int64_t{1} << 16}), 2, false}, "combinations: the result would have"},
      {"aten::combinations", {x, 5, false}, kTaken},
      {"aten::combinations", {ones({1}), 8, true}, kTaken},
      {"aten::combinations", {ones({1}), static_cast<int64_t>(kMaxDims) + 1, true}, "r must be at most"},
      {"aten::combinations", {x, -1, false}, "Expect a non-negative number, but got -1"},
      {"aten::as_strided", strided(meta({4}), {2}, {1}, 0), kTaken},
      {"aten::as_strided", strided(meta({4}), {2}, {1}, -1), "invalid storage offset -1"},
      {"aten::as_strided", strided(meta({4}), {2}, {1, 1}, 0), "mismatch in length of strides and shape"},
      {"aten::as_strided", strided(x, {4}, {1}, 0), kTaken},
      {"aten::as_strided", strided(x, {4}, {1}, 1), "as_strided"},
      {"aten::as_strided", strided(x, {2}, {4}, 0), "as_strided"},
      {"aten::diagonal", {ones({2, 2}), half - 1}, kTaken},
      {"aten::diagonal", {ones({2, 2}), half}, "is too large"},
      {"aten::diagonal", {ones({2, 2}), 1 - half}, kTaken},
      {"aten::diagonal", {ones({2, 2}), -half}, "is too large"},
      {"aten::meshgrid.indexing", {tensors({x}), "ij"}, kTaken},
      {"aten::meshgrid.indexing", {tensors({x}), "xy"}, kTaken},
      {"aten::meshgrid.indexing", {tensors({x}), "yx"}, "indexing must be one of"},
  });
}

TEST(BoundsOfCalls, Reductions) {
  const Tensor x = ones({3}), points = ones({3, 2}), edges = floats({0, 1, 2});
  const int64_t many = int64_t{1} << 31;
  const double inf = std::numeric_limits<double>::infinity();
  const auto quantile = [&](double q, const char* by = "linear") { return std::vector<Value>{x, q, kNone, false, by}; };
  const auto segments = [&](const Value& lengths, const Value& offsets) {
    return std::vector<Value>{x, "sum", lengths, kNone, offsets, 0, false, kNone};
  };
  const char *const kHistogram = "aten::histogramdd", *const kOwn = "aten::histogramdd.TensorList_bins",
                    *const kSegments = "aten::segment_reduce";
  std::vector<Row> rows = {
      {"aten::histc", {x, 1, 0.0, 1.0}, kTaken},
      {"aten::histc", {x, 0, 0.0, 1.0}, "bins must be > 0 and below 2^31, but got 0"},
      {"aten::histc", {meta({3}), many, 0.0, 1.0}, "bins must be > 0 and below 2^31"},
      {"aten::histc", {x, 2, -inf, 1.0}, "is not finite"},
      {"aten::histc", {x, 2, 0.0, inf}, "is not finite"},
      {"aten::histc", {x, 2, 2.0, 1.0}, "max must be larger than min"},
      {kHistogram, {points, ints({2, 3})}, kTaken},
      {kHistogram, {points.to(DType::kFloat64), ints({2, 3})}, kTaken},
      {kHistogram, {points.to(DType::kInt64), ints({2, 3})}, "histogramdd"},
      {kHistogram, {points, ints({2, 0})}, "bins must be > 0 and below 2^31, but got 0 for dimension 1"},
      {kHistogram, {points, ints({2, many})}, "for dimension 1"},
      {kHistogram, {points, ints({2})}, "expected 2 sequences of bin edges"},
      {kHistogram, {points, ints({1, 1}), doubles({0, 1, 0, 1})}, kTaken},
      {kHistogram, {points, ints({1, 1}), doubles({0, 1, 0, 1, 0})}, "should have 4 elements, but got 5"},
      {kHistogram, {points, ints({1, 1}), doubles({0, 1, 1, 0})}, "min should not exceed max"},
      {kHistogram, {points, ints({1, 1}), doubles({0, 1, 1, 1})}, kTaken},
      {kHistogram, {points, ints({1, 1}), doubles({0, 1, -inf, 1})}, "dimension 1's range"},
      {kHistogram, {points, ints({1, 1}), doubles({0, inf, 0, 1})}, "dimension 0's range"},
      {kHistogram, {points, ints({1, 1}), kNone, x}, kTaken},
      {kHistogram, {points, ints({1, 1}), kNone, ones({2})}, "it should have the same shape as the input tensor"},
      {kHistogram, {points, ints({1, 1}), kNone, x.to(DType::kFloat64)}, "should have the same dtype"},
      {kOwn, {points, tensors({edges, edges})}, kTaken},
      {kOwn, {points, tensors({edges, floats({0})})}, "one dimension and at least 2 edges"},
      {kOwn, {points, tensors({edges, floats({0, 1})})}, kTaken},
      {kOwn, {points, tensors({edges, ones({1, 2})})}, "one dimension and at least 2 edges"},
      {kOwn, {points, tensors({edges, edges.to(DType::kFloat64)})}, "bins tensors should have the same dtype"},
      {"aten::quantile.scalar", quantile(0), kTaken},
      {"aten::quantile.scalar", quantile(1), kTaken},
      {"aten::quantile.scalar", quantile(-1e-9), "q must be in the range [0, 1]"},
      {"aten::quantile.scalar", quantile(1 + 1e-9), "q must be in the range [0, 1]"},
      {"aten::quantile.scalar", quantile(0.5, "middle"), "interpolation must be one of"},
      {"aten::quantile", {x, floats({0, 1})}, kTaken},
      {"aten::quantile", {x, floats({0, 1.5f})}, "q values must be in the range [0, 1]"},
      {"aten::quantile", {x, floats({-0.5f, 1})}, "q values must be in the range [0, 1]"},
      {"aten::quantile", {x, ones({1, 1})}, "q must be a scalar or 1D tensor"},
      {"aten::quantile", {x.to(DType::kFloat16), floats({1}).to(DType::kFloat16)}, "either float or double dtype"},
      {kSegments, segments(longs({1, 2}), kNone), kTaken},
      {kSegments, segments(longs({1, 1}), kNone), "to sum to data.size"},
      {kSegments, segments(longs({1, 3}), kNone), "to sum to data.size"},
      {kSegments, segments(kNone, longs({0, 3})), kTaken},
      {kSegments, segments(kNone, longs({1, 2})), kTaken},
      {kSegments, segments(kNone, longs({-1, 3})), "to sum to data.size"},
      {kSegments, segments(kNone, longs({0, 4})), "to sum to data.size"},
      {kSegments, segments(kNone, longs({2, 1})), "to sum to data.size"},
      {kSegments, segments(kNone, kNone), "Either lengths or offsets must be defined"},
      {"aten::cov", {points, 1, longs({1, 0})}, kTaken},
      {"aten::cov", {points, 1, longs({1, -1})}, "fweights cannot be negative"},
      {"aten::cov", {points, 1, kNone, floats({1, -1})}, "aweights cannot be negative"},
      {"aten::cov", {points, 1, kNone, ones({3})}, "aweights to have the same numel"},
      {"aten::median", {x.to(DType::kBool)}, "median"},
      {"aten::var", {longs({1, 2}), true}, "only support floating point dtypes"},
      {"aten::std", {longs({1, 2}), true}, "only support floating point dtypes"},
  };
  for (const char* by : {"linear", "lower", "higher", "midpoint", "nearest"})
    rows.push_back({"aten::quantile.scalar", quantile(0.5, by), kTaken});
  expect_rows(rows);
}

}  // namespace
}  // namespace tensord::bounds_of_calls_test
