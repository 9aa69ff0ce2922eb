// Products with Jacobians and Hessians, compared with their formulas and with finite differences.
#include "core/autograd/functional.h"

#include "tests/autograd/support.h"

namespace tensord::autograd::functional_test {
namespace {

using Tensors = std::vector<Tensor>;

Tensor product(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::mul.Tensor", a, b); }

// (x² y, x): Jacobians diag(2 x y), diag(x²); I, 0.
Tensors function(const Tensors& in) { return {product(product(in[0], in[0]), in[1]), scale(in[0], 1)}; }
// sum(x³ y)
Tensor cubic(const Tensors& in) { return sum(product(product(product(in[0], in[0]), in[0]), in[1])); }

struct Functional : ::testing::Test {
  const Tensor x = leaf({1, 2}), y = constant({3, 5});
  const Tensors inputs{x, y};
};

TEST_F(Functional, VectorJacobianProduct) {
  const Tensors v{constant({1, 10}), constant({100, 1000})};
  const FunctionProduct found = vjp(function, inputs, v);
  EXPECT_EQ(numbers(found.outputs[0]), (Numbers{3, 20}));
  EXPECT_EQ(numbers(found.product[0]), (Numbers{6 + 100, 200 + 1000}));
  EXPECT_EQ(numbers(found.product[1]), (Numbers{1, 40}));
  EXPECT_FALSE(requires_grad(found.product[0]));
  EXPECT_FALSE(grad(x).defined());
}

TEST_F(Functional, JacobianVectorProduct) {
  const Tensors v{constant({1, 10}), constant({100, 1000})};
  const FunctionProduct found = jvp(function, inputs, v);
  EXPECT_EQ(numbers(found.product[0]), (Numbers{6 + 100, 200 + 4000}));
  EXPECT_EQ(numbers(found.product[1]), (Numbers{1, 10}));
}

TEST_F(Functional, JacobianHasABlockForEachPair) {
  const NoGradGuard off;  // the function is recorded all the same
  const auto blocks = jacobian(function, inputs);
  EXPECT_EQ(blocks[0][0].sizes(), (Dims{2, 2}));
  EXPECT_EQ(numbers(blocks[0][0]), (Numbers{6, 0, 0, 20}));
  EXPECT_EQ(numbers(blocks[0][1]), (Numbers{1, 0, 0, 4}));
  EXPECT_EQ(numbers(blocks[1][0]), (Numbers{1, 0, 0, 1}));
  EXPECT_EQ(numbers(blocks[1][1]), (Numbers{0, 0, 0, 0}));
}

TEST_F(Functional, JacobianOfNothing) {
  const Tensors empty{leaf({}, {0, 3})};
  const auto blocks = jacobian([](const Tensors& in) { return Tensors{scale(in[0], 2)}; }, empty);
  EXPECT_EQ(blocks[0][0].sizes(), (Dims{0, 3, 0, 3}));
}

TEST_F(Functional, HessianAndItsProduct) {
  const auto blocks = hessian(cubic, inputs);
  EXPECT_EQ(numbers(blocks[0][0]), (Numbers{18, 0, 0, 60}));
  EXPECT_EQ(numbers(blocks[0][1]), (Numbers{3, 0, 0, 12}));
  EXPECT_EQ(numbers(blocks[1][0]), (Numbers{3, 0, 0, 12}));
  EXPECT_EQ(numbers(blocks[1][1]), (Numbers{0, 0, 0, 0}));
  const Tensors v{constant({1, 2}), constant({3, 4})};
  const FunctionProduct found = hvp(cubic, inputs, v);
  EXPECT_EQ(numbers(found.outputs[0]), (Numbers{43}));
  EXPECT_EQ(numbers(found.product[0]), (Numbers{18 + 9, 120 + 48}));
  EXPECT_EQ(numbers(found.product[1]), (Numbers{3, 24}));
}

TEST_F(Functional, CreateGraphGoesOnThroughTheInputs) {
  const Tensors one{x};
  const auto cube = [](const Tensors& in) { return Tensors{product(product(in[0], in[0]), in[0])}; };
  const Tensors v{constant({1, 1})};
  for (const Tensor& slope : {vjp(cube, one, v, true).product[0], jvp(cube, one, v, true).product[0]}) {
    EXPECT_EQ(numbers(slope), (Numbers{3, 12}));
    const Tensor total = sum(slope);
    EXPECT_EQ(numbers(grad(std::span(&total, 1), one)[0]), (Numbers{6, 12}));
  }
}

TEST_F(Functional, VectorsMustFit) {
  const Tensors short_one{constant({1})}, wrong{constant({1}), constant({1, 2})};
  EXPECT_THAT(error_of([&] { jvp(function, inputs, short_one); }), HasSubstr("jvp: v has 1 tensors for 2"));
  EXPECT_THAT(error_of([&] { vjp(function, inputs, wrong); }), HasSubstr("vjp: v[0] must be of sizes [2]"));
  EXPECT_THAT(error_of([&] { hvp(cubic, inputs, wrong); }), HasSubstr("hvp: v[0] must be of sizes [2]"));
  EXPECT_THAT(error_of([&] { hessian([](const Tensors& in) { return in[0]; }, inputs); }),
              HasSubstr("must give a tensor of one element"));
}

TEST_F(Functional, WhatIsNoVectorOrNoScalar) {
  const Tensors none{Tensor(), constant({1, 2})}, two{constant({1, 1}), constant({1, 1})};
  EXPECT_THAT(error_of([&] { jvp(function, inputs, none); }), HasSubstr("jvp: v[0] must be of sizes [2]"));
  EXPECT_THAT(error_of([&] { vjp(function, inputs, {}); }), HasSubstr("vjp: v has 0 tensors for 2"));
  const std::string message = "the function must give a tensor of one element";
  EXPECT_EQ(error_of([&] { hvp([](const Tensors&) { return Tensor(); }, inputs, two); }), message);
  EXPECT_EQ(error_of([&] { hvp([](const Tensors& in) { return in[0]; }, inputs, two); }), message);
  EXPECT_TRUE(hessian(cubic, {}).empty());
}

// Outputs that depend on no input, or on only one.
TEST_F(Functional, ZerosWhereNothingFlows) {
  const auto fixed = [&](const Tensors&) { return Tensors{constant({7, 8})}; };
  const Tensors v{constant({1, 1})};
  const FunctionProduct found = vjp(fixed, inputs, v);
  EXPECT_EQ(numbers(found.outputs[0]), (Numbers{7, 8}));
  for (const Tensor& gradient : found.product) EXPECT_EQ(numbers(gradient), (Numbers{0, 0}));
  EXPECT_EQ(numbers(jacobian(fixed, inputs)[0][1]), (Numbers{0, 0, 0, 0}));
  const auto mixed = [&](const Tensors& in) { return Tensors{constant({7, 8}), scale(in[1], 2)}; };
  const Tensors weights{constant({1, 1}), constant({1, 10})};
  EXPECT_EQ(numbers(vjp(mixed, inputs, weights).product[1]), (Numbers{2, 20}));
}

// Without create_graph nothing is recorded, whatever the inputs are.
TEST_F(Functional, ResultsAreDetached) {
  const Tensors v{constant({1, 10}), constant({100, 1000})};
  for (const bool create_graph : {false, true}) {
    const FunctionProduct of_vector = vjp(function, inputs, v, create_graph),
                          of_inputs = jvp(function, inputs, v, create_graph);
    const FunctionProduct second = hvp(cubic, inputs, v, create_graph);
    for (const FunctionProduct* found : {&of_vector, &of_inputs, &second}) {
      EXPECT_EQ(requires_grad(found->product[0]), create_graph);
      EXPECT_EQ(requires_grad(found->outputs[0]), create_graph);
    }
    EXPECT_EQ(requires_grad(jacobian(function, inputs, create_graph)[0][0]), create_graph);
    EXPECT_EQ(requires_grad(hessian(cubic, inputs, create_graph)[0][0]), create_graph);
  }
  EXPECT_FALSE(grad(x).defined());
}

// The function gets copies of the inputs, which depend on the caller's only with create_graph.
TEST_F(Functional, InputsAreLeavesWithoutAGraph) {
  const Tensors v{constant({1, 10}), constant({100, 1000})};
  for (const bool create_graph : {false, true}) {
    std::vector<bool> are_leaves;
    const auto watched = [&](const Tensors& in) {
      for (const Tensor& input : in) {
        EXPECT_TRUE(requires_grad(input));
        are_leaves.push_back(is_leaf(input));
      }
      return function(in);
    };
    vjp(watched, inputs, v, create_graph);
    EXPECT_EQ(are_leaves, (std::vector<bool>{!create_graph, true}));
  }
}

}  // namespace
}  // namespace tensord::autograd::functional_test
