// Gradients of products, convolutions, attention and tables, compared with finite differences in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord::gradient_products_test {
namespace {

using ops::Value;

Tensor sample(const Dims& sizes, uint32_t seed) {
  Tensor out = Tensor::empty(sizes, DType::kFloat64);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<double>()[i] = 2.0 * ((state >> 8) / 16777216.0) - 1.0;
  }
  return out;
}

Tensor ints(const Dims& values) {
  Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kInt64);
  std::copy(values.begin(), values.end(), out.data<int64_t>());
  return out;
}
Value list(const Dims& dims) { return ops::make_int_list(dims); }
Tensor transposed(const Tensor& t) { return ops::call_by_name("aten::transpose.int", t, -2, -1); }

bool is_real(const Value& v) { return v.is_tensor() && v.to_tensor().dtype() == DType::kFloat64; }

// The sum of the floating-point results times weights.
double loss(const ops::Op& op, const std::vector<Value>& arguments, const std::vector<Tensor>& weights) {
  const std::vector<Value> results = ops::run(op, arguments);
  double total = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    if (!is_real(results[r])) continue;
    const Tensor result = results[r].to_tensor().contiguous();
    for (int64_t i = 0; i < result.numel(); ++i) total += result.data<double>()[i] * weights[r].data<double>()[i];
  }
  return total;
}

// The element at row-major position `i`.
double& element(const Tensor& t, int64_t i) {
  int64_t offset = 0;
  for (int64_t d = t.ndim() - 1; d >= 0; --d) {
    offset += i % t.sizes()[d] * t.strides()[d];
    i /= t.sizes()[d];
  }
  return t.data<double>()[offset];
}

void expect_gradient(const std::string& name, const std::vector<Value>& positional) {
  SCOPED_TRACE(name);
  set_thread_budget(1);
  const ops::Op& op = ops::get_op(name);
  ASSERT_TRUE(op.gradient) << "no gradient";
  const std::vector<Value> arguments = ops::bind(op, positional), outputs = ops::run(op, arguments);
  std::vector<Tensor> weights(outputs.size());
  for (size_t r = 0; r < outputs.size(); ++r) {
    if (is_real(outputs[r])) weights[r] = sample(outputs[r].to_tensor().sizes(), 77 + static_cast<uint32_t>(r));
  }
  const auto meta = [](const Value& v) {
    return v.is_tensor()
               ? Value(Tensor::meta_strided(v.to_tensor().sizes(), v.to_tensor().strides(), v.to_tensor().dtype()))
               : v;
  };
  // Unsaved tensors are passed as meta tensors.
  std::vector<Value> inputs = arguments, results = outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(op.saved_inputs >> i & 1)) inputs[i] = meta(inputs[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!(op.saved_outputs >> i & 1)) results[i] = meta(results[i]);
  }
  const std::vector<Value> all = op.gradient({inputs, results, weights});
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!is_real(arguments[a])) continue;
    ASSERT_TRUE(all.at(a).is_tensor()) << "argument " << a;
    const Tensor input = arguments[a].to_tensor(), gradient = all[a].to_tensor();
    ASSERT_EQ(gradient.sizes(), input.sizes());
    constexpr double kStep = 1e-5;
    for (int64_t i = 0; i < input.numel(); ++i) {
      double& x = element(input, i);
      const double old = x;
      x = old + kStep;
      const double above = loss(op, arguments, weights);
      x = old - kStep;
      const double below = loss(op, arguments, weights);
      x = old;
      const double expected = (above - below) / (2 * kStep);
      ASSERT_NEAR(element(gradient, i), expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << "argument " << a << " element " << i;
    }
    // Requesting only this gradient gives the same.
    const std::vector<Value> one = op.gradient({inputs, results, weights, uint64_t{1} << a});
    for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].is_tensor(), i == a) << "argument " << i;
    for (int64_t i = 0; i < input.numel(); ++i)
      ASSERT_NEAR(element(one[a].to_tensor(), i), element(gradient, i), 1e-12);
  }
}

TEST(ProductGradient, OfMatricesAndVectors) {
  const Tensor a = sample({3, 4}, 1), b = sample({4, 2}, 2), v = sample({4}, 3), w = sample({3}, 4);
  expect_gradient("aten::mm", {a, b});
  expect_gradient("aten::mm", {a, transposed(sample({2, 4}, 5))});
  expect_gradient("aten::mv", {a, v});
  expect_gradient("aten::dot", {v, sample({4}, 6)});
  expect_gradient("aten::vdot", {v, sample({4}, 6)});
  expect_gradient("aten::outer", {w, v});
  expect_gradient("aten::ger", {w, v});
  expect_gradient("aten::bmm", {sample({2, 3, 4}, 7), sample({2, 4, 2}, 8)});
  expect_gradient("aten::addmm", {sample({2}, 9), a, b, 0.5, 2.0});
  expect_gradient("aten::addmm", {sample({3, 1}, 9), a, b});
  expect_gradient("aten::addmv", {w, a, v, 0.5, 2.0});
  expect_gradient("aten::baddbmm", {sample({3, 2}, 9), sample({2, 3, 4}, 7), sample({2, 4, 2}, 8), 0.5, 2.0});
  expect_gradient("aten::addbmm", {sample({3, 2}, 9), sample({2, 3, 4}, 7), sample({2, 4, 2}, 8), 0.5, 2.0});
}

TEST(ProductGradient, OfMatmulAndLinear) {
  const std::vector<std::pair<Dims, Dims>> shapes{{{4}, {4}},
                                                  {{3, 4}, {4}},
                                                  {{4}, {4, 2}},
                                                  {{3, 4}, {4, 2}},
                                                  {{2, 3, 4}, {4, 2}},
                                                  {{2, 3, 4}, {4}},
                                                  {{4}, {2, 4, 3}},
                                                  {{2, 3, 4}, {2, 4, 2}},
                                                  {{1, 3, 4}, {2, 4, 2}},
                                                  {{3, 4}, {2, 4, 2}},
                                                  {{2, 1, 3, 4}, {3, 4, 2}}};
  for (const auto& [a, b] : shapes) expect_gradient("aten::matmul", {sample(a, 1), sample(b, 2)});
  for (const Dims& x : {Dims{4}, Dims{3, 4}, Dims{2, 3, 4}}) {
    expect_gradient("aten::linear", {sample(x, 1), sample({2, 4}, 2), sample({2}, 3)});
    expect_gradient("aten::linear", {sample(x, 1), sample({2, 4}, 2)});
    expect_gradient("aten::linear", {sample(x, 1), sample({4}, 2)});
  }
}

TEST(ProductGradient, OfConvolutions) {
  const Tensor bias = sample({4}, 3);
  const Dims sizes{5, 4, 3};
  for (int64_t dims = 1; dims <= 3; ++dims) {
    const auto one = [&](int64_t value) { return list(Dims(static_cast<size_t>(dims), value)); };
    const auto shape = [&](Dims leading, const Dims& rest) {
      for (int64_t d = 0; d < dims; ++d) leading.push_back(rest[static_cast<size_t>(d)]);
      return leading;
    };
    const std::string name = concat("aten::conv", dims, "d"), back = concat("aten::conv_transpose", dims, "d");
    const Dims kernel{3, 2, 2};
    const Tensor x = sample(shape({2, 2}, sizes), 1), w = sample(shape({4, 2}, kernel), 2);
    expect_gradient(name, {x, w, bias});
    expect_gradient(name, {x, w, Value(), one(2), one(1)});
    expect_gradient(name, {x, sample(shape({4, 1}, kernel), 2), bias, one(1), one(2), one(2), 2});
    expect_gradient(name, {sample(shape({2}, sizes), 1), w, bias});
    expect_gradient(name + ".padding", {x, w, bias, one(1), "same"});
    const std::string transposed_name = dims == 1 ? back : back + ".input";
    const Tensor small = sample(shape({2, 4}, Dims{3, 2, 2}), 1), of_small = sample(shape({4, 2}, kernel), 2);
    expect_gradient(transposed_name, {small, of_small, sample({2}, 3)});
    expect_gradient(transposed_name, {small, of_small, sample({4}, 3), one(2), one(1), one(1), 2, one(1)});
    expect_gradient(transposed_name, {small, of_small, Value(), one(1), one(0), one(1), 1, one(2)});
    expect_gradient("aten::convolution", {x, w, bias, one(2), one(1), one(1), false, one(0), 1});
  }
}

TEST(ProductGradient, OfConvolutionsGradients) {
  const Value mask = ops::make_list(ops::bool_type(), {true, true, true});
  for (const bool is_transposed : {false, true}) {
    const Tensor x = sample({2, 2, 4, 3}, 1), w = sample({2, 2, 2, 2}, 2);
    const Tensor y = ops::call_by_name("aten::convolution", x, w, Value(), list({2, 1}), list({1, 0}), list({1, 1}),
                                       is_transposed, list({0, 0}), 1);
    expect_gradient("aten::convolution_backward", {sample(y.sizes(), 3), x, w, list({2}), list({2, 1}), list({1, 0}),
                                                   list({1, 1}), is_transposed, list({0, 0}), 1, mask});
  }
}

TEST(ProductGradient, OfAttention) {
  const Tensor q = sample({2, 3, 4}, 1), k = sample({2, 5, 4}, 2), v = sample({1, 5, 2}, 3);
  const Tensor hidden = ops::call_by_name("aten::gt.Scalar", sample({3, 5}, 9), ops::Scalar(0.3));
  expect_gradient("tensord::attention", {q, k, v, Value(), 0.5});
  expect_gradient("tensord::attention", {q, k, v, sample({3, 5}, 4), 0.5});
  expect_gradient("tensord::attention", {q, k, v, hidden, 0.5, -2.0, true});
  expect_gradient("tensord::attention", {q, k, v, hidden, 0.5, -2.0, false});
  expect_gradient("tensord::attention", {q, k, v, Value(), 0.5, Value(), true, true});
  expect_gradient("tensord::attention", {q, k, v, Value(), 0.5, Value(), true, false, true});
}

TEST(ProductGradient, OfTables) {
  const Tensor table = sample({5, 3}, 1), indices = ints({1, 4, 1, 0, 2, 1}), offsets = ints({0, 2, 2, 5});
  expect_gradient("aten::embedding", {table, indices});
  expect_gradient("aten::embedding_dense_backward", {sample({6, 3}, 2), indices, 5, 1, true});
  expect_gradient("aten::index_select", {sample({2, 5, 3}, 1), 1, indices});
  for (int64_t mode = 0; mode < 3; ++mode)
    expect_gradient("aten::embedding_bag", {table, indices, offsets, false, mode});
  const Tensor weights = sample({6}, 4);
  expect_gradient("aten::embedding_bag", {table, indices, offsets, false, 0, false, weights, true});
  expect_gradient("aten::embedding_bag.padding_idx",
                  {table, indices, offsets, false, 0, false, weights, false, Value()});
  const Tensor g = sample({4, 3}, 5), none = ints({0, 0, 0, 0});
  expect_gradient("aten::_embedding_bag_backward",
                  {g, indices, offsets, none, none, none, 5, false, 0, false, weights, 1});
  expect_gradient("aten::_embedding_bag_backward",
                  {g, indices, offsets, none, none, none, 5, false, 1, false, Value()});
  expect_gradient("aten::_embedding_bag_per_sample_weights_backward", {g, table, indices, offsets, none, 0, 1});
}

// Padding rows get no gradient; frequent rows may be scaled by frequency.
TEST(ProductGradient, OfPaddingAndFrequency) {
  const Tensor table = sample({3, 1}, 1), indices = ints({0, 1, 1, 2});
  const ops::Op& op = ops::get_op("aten::embedding");
  const auto run = [&](int64_t padding, bool scales) {
    const std::vector<Value> in = ops::bind(op, {table, indices, padding, scales}), out = ops::run(op, in);
    const std::vector<Tensor> g{ops::call_by_name("aten::ones", Dims{4, 1}, DType::kFloat64)};
    const Tensor found = op.gradient({in, out, g}).at(0).to_tensor();
    return std::vector<double>(found.data<double>(), found.data<double>() + 3);
  };
  EXPECT_EQ(run(-1, false), (std::vector<double>{1, 2, 1}));
  EXPECT_EQ(run(2, false), (std::vector<double>{1, 2, 0}));
  EXPECT_EQ(run(-1, true), (std::vector<double>{1, 1, 1}));
}

TEST(ProductGradient, OfPackedSequences) {
  expect_gradient("aten::_pack_padded_sequence", {sample({3, 2, 2}, 1), ints({3, 1}), false});
  expect_gradient("aten::_pack_padded_sequence", {sample({2, 4, 2}, 1), ints({3, 1}), true});
  expect_gradient("aten::_pad_packed_sequence", {sample({4, 2}, 1), ints({2, 1, 1}), true, ops::Scalar(0.0), 5});
}

// float32 uses vector code and oneDNN; float64 is checked by the tests above.
TEST(ProductGradient, OfFloatConvolutionsEqualDoubles) {
  struct Row {
    Dims x, w;
    int64_t stride, padding, dilation, groups;
  };
  const std::vector<Row> rows{
      {{2, 3, 19, 17}, {32, 3, 7, 7}, 2, 3, 1, 1},      {{2, 16, 8, 8}, {32, 16, 3, 3}, 1, 1, 1, 1},
      {{2, 32, 9, 9}, {32, 32, 3, 3}, 2, 1, 1, 1},      {{2, 32, 9, 7}, {64, 32, 1, 1}, 2, 0, 1, 1},
      {{2, 64, 12, 12}, {64, 64, 3, 3}, 1, 1, 1, 1},    {{1, 24, 9, 9}, {24, 1, 3, 3}, 1, 1, 1, 24},
      {{3, 8, 9, 9}, {12, 4, 3, 2}, 1, 2, 2, 2},        {{2, 5, 6, 6}, {7, 5, 3, 3}, 3, 0, 1, 1},
      {{3, 48, 15, 10}, {32, 48, 3, 3}, 1, 0, 1, 1},    {{4, 32, 5, 9}, {80, 32, 3, 3}, 1, 2, 1, 1},
      {{1, 512, 13, 13}, {144, 512, 3, 3}, 1, 1, 1, 1}, {{2, 16, 16, 12}, {32, 16, 3, 3}, 1, 1, 1, 1},
      {{2, 16, 13, 11}, {96, 16, 3, 3}, 1, 1, 1, 1}};
  const ops::Op &conv = ops::get_op("aten::conv2d"), &back = ops::get_op("aten::convolution_backward");
  for (const Row& row : rows) {
    for (const bool last : {false, true}) {
      SCOPED_TRACE(concat(to_string(row.x), " ", to_string(row.w), last ? " last" : ""));
      const auto as = [&](const Tensor& t, DType dtype) {
        const Tensor converted = t.to(dtype);
        if (!last) return converted;
        const Tensor out = Tensor::empty_strided(t.sizes(), channels_last_strides(t.sizes()), dtype);
        out.copy_from(converted);
        return out;
      };
      const auto two = [](int64_t value) { return list({value, value}); };
      const Tensor x = sample(row.x, 1), w = sample(row.w, 2), b = sample({row.w[0]}, 3);
      std::vector<std::vector<Value>> found;
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        const std::vector<Value> in{as(x, dtype),     as(w, dtype),      b.to(dtype), two(row.stride),
                                    two(row.padding), two(row.dilation), row.groups};
        const Tensor y = ops::run(conv, in).at(0).to_tensor();
        const Tensor g = as(sample(y.sizes(), 4), dtype);
        std::vector<Value> results =
            ops::run(back, std::vector<Value>{g, in[0], in[1], list({row.w[0]}), in[3], in[4], in[5], false, two(0),
                                              in[6], ops::make_list(ops::bool_type(), {true, true, true})});
        results.push_back(y);
        found.push_back(results);
      }
      for (size_t r = 0; r < 4; ++r) {
        const Tensor exact = found[0][r].to_tensor().contiguous(),
                     got = found[1][r].to_tensor().to(DType::kFloat64).contiguous();
        ASSERT_EQ(got.sizes(), exact.sizes());
        double largest = 0;
        for (int64_t i = 0; i < exact.numel(); ++i) largest = std::max(largest, std::abs(exact.data<double>()[i]));
        for (int64_t i = 0; i < exact.numel(); ++i)
          ASSERT_NEAR(got.data<double>()[i], exact.data<double>()[i], 2e-5 * largest) << "result " << r << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tensord::gradient_products_test
