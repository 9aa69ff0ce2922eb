// Cases beyond the op cases: gradients in channels-last memory, sizes that are split into parts, sums independent of
// threads, and statistics far from 0.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/parallel.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"

namespace tensord::norm_pool_gradient_test {
namespace {

using ops::Value;

Tensor random(const Dims& sizes, bool last = false, float low = -1, float high = 1) {
  const Tensor out = last ? Tensor::empty_strided(sizes, channels_last_strides(sizes), DType::kFloat32)
                          : Tensor::empty(sizes, DType::kFloat32);
  const Tensor values = Tensor::empty(sizes, DType::kFloat32);
  uint32_t state = 77;
  for (int64_t i = 0; i < values.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    values.data<float>()[i] = low + (high - low) * static_cast<float>(state >> 8) / 16777216.0f;
  }
  out.copy_from(values);
  return out;
}
Value ints(const Dims& dims) { return ops::make_int_list(dims); }

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  const Tensor x = a.to(DType::kFloat64).contiguous(), y = b.to(DType::kFloat64).contiguous();
  double largest = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double difference = std::abs(x.data<double>()[i] - y.data<double>()[i]);
    largest = difference <= largest ? largest : difference;
  }
  return largest;
}

// The result and the gradients of all float tensors among the arguments.
std::vector<Tensor> forward_backward(const char* op_name, const std::vector<Value>& arguments, const Tensor& g = {}) {
  const ops::Op& op = ops::get_op(op_name);
  std::vector<Value> own;
  std::vector<Tensor> leaves;
  for (const Value& argument : arguments) {
    own.push_back(argument);
    if (!argument.is_tensor() || !is_floating(argument.to_tensor().dtype())) continue;
    const Tensor leaf = autograd::detach(argument.to_tensor());
    autograd::set_requires_grad(leaf);
    leaves.push_back(leaf);
    own.back() = leaf;
  }
  const Tensor result = ops::run(op, ops::bind(op, own)).at(0).to_tensor();
  Tensor incoming = g;
  if (!g.defined()) incoming = random(result.sizes(), false, 0.5f, 1.5f);
  std::vector<Tensor> out{autograd::detach(result)};
  const Tensor results[] = {result}, gradients[] = {incoming};
  for (const Tensor& gradient : autograd::grad(results, leaves, gradients)) out.push_back(gradient);
  return out;
}

void expect_orders_agree(const char* op, std::vector<Value> arguments, double tolerance) {
  SCOPED_TRACE(op);
  const Dims sizes = arguments[0].to_tensor().sizes();
  const std::vector<Tensor> expected = forward_backward(op, arguments);
  arguments[0] = random(sizes, true);
  const std::vector<Tensor> got = forward_backward(op, arguments);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_LT(largest_difference(got[i], expected[i]), tolerance) << "tensor " << i;
  EXPECT_TRUE(got[0].is_channels_last());
  EXPECT_TRUE(got[1].is_channels_last());
}

TEST(NormPoolGradient, OrdersOfMemoryAgree) {
  for (const Dims& sizes : {Dims{3, 5, 4, 7}, Dims{2, 70, 9, 9}, Dims{5, 64, 22, 22}, Dims{2, 3, 70, 70}}) {
    SCOPED_TRACE(to_string(sizes));
    const Tensor x = random(sizes), weight = random(Dims{sizes[1]}), bias = random(Dims{sizes[1]});
    for (const bool training : {false, true}) {
      // The running statistics are detached, so that the gradients are those of input, weight and bias.
      const ops::Op& op = ops::get_op("aten::batch_norm");
      const auto run = [&](bool last) {
        const Tensor leaf = random(sizes, last), w = weight.clone(), b = bias.clone(), mean = random(Dims{sizes[1]}),
                     variance = random(Dims{sizes[1]}, false, 0.5f, 1.5f);
        for (const Tensor& t : {leaf, w, b}) autograd::set_requires_grad(t);
        const Tensor y =
            ops::run(op, ops::bind(op, {leaf, w, b, mean, variance, training, 0.1, 1e-5, false})).at(0).to_tensor();
        const Tensor out[] = {y}, leaves[] = {leaf, w, b}, g[] = {random(sizes, false, 0.5f, 1.5f)};
        std::vector<Tensor> all = autograd::grad(out, leaves, g);
        all.insert(all.end(), {autograd::detach(y), mean, variance});
        return all;
      };
      const std::vector<Tensor> planes = run(false), last = run(true);
      for (size_t i = 0; i < planes.size(); ++i) {
        const double scale = i == 1 || i == 2 ? 1e-6 * static_cast<double>(x.numel() / sizes[1]) : 1e-4;
        EXPECT_LT(largest_difference(planes[i], last[i]), std::max(scale, 1e-4)) << "tensor " << i;
      }
    }
    expect_orders_agree("aten::max_pool2d", {x, ints({3, 3}), ints({2, 2}), ints({1, 1}), ints({1, 1}), false}, 1e-5);
    expect_orders_agree("aten::max_pool2d_with_indices",
                        {x, ints({2, 3}), ints({1, 2}), ints({1, 0}), ints({1, 1}), true}, 1e-5);
    expect_orders_agree("aten::avg_pool2d", {x, ints({3, 2}), ints({2, 2}), ints({1, 1}), true, false}, 1e-5);
    expect_orders_agree("aten::adaptive_avg_pool2d", {x, ints({3, 2})}, 1e-5);
    expect_orders_agree("aten::adaptive_avg_pool2d", {x, ints({1, 1})}, 1e-5);
    expect_orders_agree("aten::adaptive_max_pool2d", {x, ints({3, 2})}, 1e-5);
  }
}

// The indices and the one-pass backward must select the same of equal pixels, and the last of NaNs.
TEST(NormPoolGradient, MaxPoolingChoosesOneOfEqualPixels) {
  const Tensor x = random(Dims{2, 3, 12, 33});
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = std::round(x.data<float>()[i]);
  x.data<float>()[40] = x.data<float>()[41] = NAN;
  const std::vector<Value> arguments{x, ints({3, 3}), ints({2, 1}), ints({1, 1}), ints({1, 2}), false};
  const std::vector<Tensor> plain = forward_backward("aten::max_pool2d", arguments),
                            indexed = forward_backward("aten::max_pool2d_with_indices", arguments);
  EXPECT_EQ(largest_difference(plain[1], indexed[1]), 0);
}

TEST(NormPoolGradient, SumsDoNotDependOnThreads) {
  const Tensor rows = random(Dims{1200, 96}), image = random(Dims{6, 48, 40, 40}),
               last = random(Dims{6, 48, 40, 40}, true);
  const Value none{};
  const int before = thread_budget();
  const auto checked = [&](int threads) {
    set_thread_budget(threads);
    std::vector<Tensor> out;
    const Tensor labels = Tensor::empty(Dims{1200}, DType::kInt64);
    for (int64_t i = 0; i < 1200; ++i) labels.data<int64_t>()[i] = i % 96;
    const auto add = [&](const char* op, const std::vector<Value>& arguments, const Tensor& g = {}) {
      for (const Tensor& t : forward_backward(op, arguments, g)) out.push_back(t);
    };
    add("aten::layer_norm", {rows, ints({96}), random(Dims{96}), random(Dims{96})});
    add("aten::group_norm", {image, 6, random(Dims{48}), random(Dims{48})});
    for (const Tensor& x : {image, last})
      add("aten::batch_norm", {x, random(Dims{48}), random(Dims{48}), none, none, true, 0.1, 1e-5, false});
    add("aten::cross_entropy_loss", {rows, labels}, Tensor::scalar(1.0f));
    return out;
  };
  const std::vector<Tensor> one = checked(1), many = checked(5);
  set_thread_budget(before);
  ASSERT_EQ(one.size(), many.size());
  for (size_t i = 0; i < one.size(); ++i) {
    const Tensor a = one[i].contiguous(), b = many[i].contiguous();
    EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()), 0) << "tensor " << i;
  }
}

// A mean a thousand deviations from 0 must not cost the variance its precision.
TEST(NormPoolGradient, StatisticsFarFromZero) {
  for (const bool last : {false, true}) {
    const Tensor x = random(Dims{4, 20, 30, 30}, last, 999, 1001);
    const Tensor mean = Tensor::empty(Dims{20}, DType::kFloat32), variance = Tensor::empty(Dims{20}, DType::kFloat32);
    mean.copy_from(Tensor::scalar(0.0f));
    variance.copy_from(Tensor::scalar(0.0f));
    const ops::Op& op = ops::get_op("aten::batch_norm");
    ops::run(op, ops::bind(op, {x, Value(), Value(), mean, variance, true, 1.0, 1e-5, false}));
    const Tensor wide = x.to(DType::kFloat64);
    const Tensor expected = ops::call_by_name("aten::var.dim", wide, Dims{0, 2, 3}, true);
    EXPECT_LT(largest_difference(variance, expected), 1e-5);
    EXPECT_LT(largest_difference(mean, ops::call_by_name("aten::mean.dim", wide, Dims{0, 2, 3})), 3e-4);
  }
}

TEST(NormPoolGradient, DropoutDrawsAsBernoulliAndGivesItsMaskToTheGradient) {
  const Tensor x = random(Dims{37, 211}, false, 0.5f, 1.5f);
  ops::Generator generator(5);
  const ops::GeneratorGuard guard(generator);
  const Tensor mask = Tensor::empty(x.sizes(), DType::kFloat32);
  ops::call_by_name("aten::bernoulli_.float", mask, 0.7);
  generator.set_seed(5);
  const std::vector<Tensor> got = forward_backward("aten::dropout", {x, 0.3, true}, x);
  const float scale = 1.0f / 0.7f;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float expected = x.data<float>()[i] * mask.data<float>()[i] * scale;
    ASSERT_FLOAT_EQ(got[0].data<float>()[i], expected) << i;
    ASSERT_FLOAT_EQ(got[1].data<float>()[i], expected) << i;
  }
}

TEST(NormPoolGradient, BadIndicesAreAnErrorNotAWrite) {
  const Tensor x = random(Dims{1, 2, 4, 4}), g = random(Dims{1, 2, 2, 2});
  const Tensor indices = Tensor::empty(Dims{1, 2, 2, 2}, DType::kInt64);
  for (int64_t i = 0; i < 8; ++i) indices.data<int64_t>()[i] = i == 7 ? 16 : i;
  EXPECT_THROW(ops::call_by_name("aten::max_pool2d_with_indices_backward", g, x, Dims{2, 2}, Dims{2, 2}, Dims{0, 0},
                                 Dims{1, 1}, false, indices),
               Error);
  EXPECT_THROW(ops::call_by_name("aten::adaptive_max_pool2d_backward", g, random(Dims{1, 1, 4, 4}), indices), Error);
}

}  // namespace
}  // namespace tensord::norm_pool_gradient_test
