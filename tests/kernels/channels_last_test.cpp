// Operators that preserve the memory format: a channels_last input gives a channels_last output, with the same values
// as for a row-major input.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"

namespace tensord::channels_last_test {
namespace {

using ops::Value;

Tensor random(std::initializer_list<int64_t> sizes) {
  static std::mt19937 generator(11);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(Dims(sizes), DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

Tensor to_channels_last(const Tensor& t) {
  const Tensor out = Tensor::empty_strided(t.sizes(), channels_last_strides(t.sizes()), t.dtype());
  out.copy_from(t);
  return out;
}

Value ints(std::initializer_list<int64_t> values) { return ops::make_int_list(Dims(values)); }

struct Row {
  const char* op;
  std::vector<Value> arguments;  // after the input
};

void expect_kept(const Row& row, const Tensor& input, DType dtype) {
  const ops::Op& op = ops::get_op(row.op);
  const auto call = [&](const Tensor& x) {
    std::vector<Value> arguments{x};
    for (const Value& argument : row.arguments) {
      arguments.push_back(argument.is_tensor() ? Value(argument.to_tensor().to(dtype)) : argument);
    }
    return ops::run(op, ops::bind(op, arguments));
  };
  const std::vector<Value> expected = call(input.to(dtype)), got = call(to_channels_last(input.to(dtype)));
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor &a = expected[i].to_tensor(), &b = got[i].to_tensor();
    EXPECT_TRUE(a.is_contiguous()) << row.op;
    EXPECT_TRUE(b.is_channels_last()) << row.op << " gave " << to_string(b.strides());
    ASSERT_EQ(to_string(a.sizes()), to_string(b.sizes())) << row.op;
    const Tensor x = a.to(DType::kFloat64), y = b.to(DType::kFloat64).contiguous();
    for (int64_t k = 0; k < x.numel(); ++k) {
      const double limit = dtype == DType::kFloat16 ? 2e-2 : 1e-4;
      ASSERT_NEAR(x.data<double>()[k], y.data<double>()[k], limit) << row.op << " output " << i << " element " << k;
    }
  }
}

TEST(ChannelsLastKernels, TwoSpatialDimensions) {
  const std::vector<Row> rows{
      {"aten::conv2d", {random({10, 6, 3, 3}), random({10}), ints({2, 2}), ints({1, 1})}},
      {"aten::conv2d", {random({6, 1, 3, 3}), Value(), ints({1, 1}), ints({1, 1}), ints({1, 1}), 6}},
      {"aten::conv_transpose2d.input", {random({6, 4, 3, 3}), random({4}), ints({2, 2})}},
      {"aten::max_pool2d", {ints({3, 3}), ints({2, 2}), ints({1, 1})}},
      {"aten::max_pool2d_with_indices", {ints({3, 2}), ints({2, 1}), ints({1, 1}), ints({1, 2}), true}},
      {"aten::avg_pool2d", {ints({3, 3}), ints({2, 2}), ints({1, 1}), true, false}},
      {"aten::adaptive_avg_pool2d", {ints({3, 2})}},
      {"aten::adaptive_max_pool2d", {ints({3, 2})}},
      {"aten::upsample_nearest2d", {ints({15, 5})}},
      {"aten::upsample_bilinear2d", {ints({15, 5}), false}},
      {"aten::upsample_bicubic2d", {ints({15, 5}), true}},
  };
  for (const Row& row : rows) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16})
      expect_kept(row, random({2, 6, 9, 7}), dtype);
  }
  // More channels than a block of sums.
  expect_kept({"aten::adaptive_avg_pool2d", {ints({1, 1})}}, random({2, 1100, 3, 3}), DType::kFloat32);
  expect_kept({"aten::upsample_bilinear2d", {ints({5, 5}), false}}, random({1, 600, 3, 3}), DType::kFloat32);
}

TEST(ChannelsLastKernels, ThreeSpatialDimensions) {
  const std::vector<Row> rows{
      {"aten::conv3d", {random({10, 6, 2, 3, 3}), random({10}), ints({1, 2, 2}), ints({1, 1, 1})}},
      {"aten::max_pool3d", {ints({2, 3, 3}), ints({2, 2, 2}), ints({1, 1, 1})}},
      {"aten::avg_pool3d", {ints({2, 3, 3})}},
      {"aten::adaptive_avg_pool3d", {ints({2, 3, 2})}},
      {"aten::upsample_trilinear3d", {ints({3, 9, 5}), false}},
  };
  for (const Row& row : rows) expect_kept(row, random({2, 6, 4, 9, 7}), DType::kFloat32);
}

// The second dimension of a volume without a batch is none of channels, even where it lies last.
TEST(ChannelsLastKernels, VolumesWithoutABatch) {
  const Value two = ints({2, 2, 2}), sizes = ints({2, 3, 2});
  const std::vector<Row> rows{{"aten::max_pool3d", {two}},
                              {"aten::max_pool3d_with_indices", {two, two, ints({1, 1, 1})}},
                              {"aten::avg_pool3d", {two}},
                              {"aten::adaptive_avg_pool3d", {sizes}},
                              {"aten::adaptive_max_pool3d", {sizes}},
                              {"aten::conv3d", {random({2, 3, 2, 2, 2})}}};
  for (const Row& row : rows) {
    const auto outcome = [&](const Tensor& x) {
      autograd::set_requires_grad(x);
      std::vector<Value> arguments{x};
      arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
      const ops::Op& op = ops::get_op(row.op);
      const Tensor out = ops::run(op, ops::bind(op, arguments))[0].to_tensor();
      const Tensor g = Tensor::empty(out.sizes(), DType::kFloat32);
      for (int64_t i = 0; i < g.numel(); ++i) g.data<float>()[i] = static_cast<float>(i % 7) - 2;
      const Tensor roots[] = {out}, leaves[] = {x}, grads[] = {g};
      return std::pair(out.contiguous(), autograd::grad(roots, leaves, grads)[0].contiguous());
    };
    const Tensor x = random({3, 5, 6, 4});
    const auto [values, gradient] = outcome(x);
    const auto [got, got_gradient] = outcome(to_channels_last(x.to(DType::kFloat32)));
    for (int64_t i = 0; i < values.numel(); ++i)
      ASSERT_NEAR(got.data<float>()[i], values.data<float>()[i], 1e-5) << row.op;
    for (int64_t i = 0; i < x.numel(); ++i)
      ASSERT_NEAR(got_gradient.data<float>()[i], gradient.data<float>()[i], 1e-5) << row.op;
  }
}

}  // namespace
}  // namespace tensord::channels_last_test
