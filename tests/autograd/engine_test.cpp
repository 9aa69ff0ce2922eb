// Backward passes: which gradients reach the leaves, in which order, and which calls are refused.
#include "core/autograd/engine.h"

#include "tests/autograd/support.h"

namespace tensord::autograd::engine_test {
namespace {

BackwardOptions retaining() {
  BackwardOptions options;
  options.retain_graph = true;
  return options;
}
BackwardOptions creating() {
  BackwardOptions options;
  options.create_graph = true;
  return options;
}
Tensor grad_of(const Tensor& output, const Tensor& input, BackwardOptions options = {}) {
  return grad(std::span(&output, 1), std::span(&input, 1), {}, options).at(0);
}

TEST(Engine, ProductWithItself) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = mul(x, x);
  EXPECT_TRUE(requires_grad(y));
  EXPECT_FALSE(is_leaf(y));
  EXPECT_EQ(grad_fn(y)->name(), "MulBackward0");
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 4, 6}));
}

TEST(Engine, BroadcastGradientsAreSummed) {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3}), b = leaf({1, 2, 3});
  backward(sum(mul(x, b)));
  EXPECT_EQ(numbers(grad(b)), (Numbers{5, 7, 9}));
  EXPECT_EQ(grad(b).sizes(), (Dims{3}));
}

TEST(Engine, GradientsAddUpOverPassesAndPaths) {
  const Tensor x = leaf({2});
  const Tensor y = add(mul(x, x), scale(x, 3));
  backward(sum(y), {}, retaining());
  EXPECT_EQ(numbers(grad(x)), (Numbers{7}));
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{14}));
}

TEST(Engine, SecondDerivatives) {
  const Tensor x = leaf({2, 3});
  const Tensor y = sum(mul(mul(x, x), x));
  const Tensor first = grad_of(y, x, creating());
  EXPECT_EQ(numbers(first), (Numbers{12, 27}));
  const Tensor second = grad_of(sum(first), x, creating());
  EXPECT_EQ(numbers(second), (Numbers{12, 18}));
  EXPECT_EQ(numbers(grad_of(sum(second), x)), (Numbers{6, 6}));
  EXPECT_FALSE(grad(x).defined());
}

TEST(Engine, SecondDerivativesThroughSavedResults) {
  const Tensor x = leaf({0.5});
  const Tensor y = ops::call_by_name("aten::sigmoid", x);
  const double s = numbers(y)[0];
  const Tensor first = grad_of(y, x, creating());
  EXPECT_NEAR(numbers(first)[0], s * (1 - s), 1e-12);
  EXPECT_NEAR(numbers(grad_of(first, x))[0], s * (1 - s) * (1 - 2 * s), 1e-12);
}

TEST(Engine, Errors) {
  const Tensor x = leaf({1, 2});
  const Tensor y = mul(x, x);
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("grad can be implicitly created only for scalar outputs"));
  EXPECT_THAT(error_of([&] { backward(constant({1})); }),
              HasSubstr("element 0 of tensors does not require grad and does not have a grad_fn"));
  const Tensor total = sum(y);
  backward(total);
  EXPECT_THAT(error_of([&] { backward(total); }), HasSubstr("Trying to backward through the graph a second time"));
  EXPECT_THAT(error_of([&] { grad_of(sum(mul(x, x)), leaf({1})); }),
              HasSubstr("One of the differentiated Tensors appears to not have been used in the graph. Set "
                        "allow_unused=True if this is the desired behavior."));
  EXPECT_THAT(error_of([&] { grad_of(sum(mul(x, x)), constant({1})); }),
              HasSubstr("One of the differentiated Tensors does not require grad"));
  EXPECT_THAT(error_of([&] {
                backward(mul(x, x), constant({1, 2, 3}));
              }),
              HasSubstr("Mismatch in shape: grad_output[0] has a shape of [3] and output[0] has a shape of [2]."));
}

TEST(Engine, LongChainsNeedNoStack) {
  constexpr int kLength = 100'000;
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < kLength; ++i) y = add(y, x);
  backward(y);
  EXPECT_EQ(numbers(grad(x)), (Numbers{kLength + 1.0}));
  // Freed without a pass, with tensors saved on the way.
  Tensor z = x;
  for (int i = 0; i < kLength; ++i) z = ops::call_by_name("aten::sin", z);
  z = {};
}

}  // namespace
}  // namespace tensord::autograd::engine_test
