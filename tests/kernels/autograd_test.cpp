// Autograd as scripts call it: the operators of kernels/composite/autograd.cpp.
#include "tests/autograd/support.h"

namespace tensord::autograd::autograd_test {
namespace {

using ops::Value;

Value run(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  const std::vector<Value> results = ops::run(op, ops::bind(op, std::move(arguments)));
  return results.empty() ? Value() : results.front();
}

TEST(AutogradOps, PropertiesOfTensors) {
  const Tensor x = constant({1, 2});
  EXPECT_FALSE(run("prim::requires_grad", {x}).to_bool());
  EXPECT_TRUE(run("aten::requires_grad_", {x}).is_same(x));
  EXPECT_TRUE(run("prim::requires_grad", {x}).to_bool());
  EXPECT_EQ(run("aten::_version", {x}).to_int(), 0);
  const Tensor y = scale(x, 2);
  EXPECT_TRUE(run("aten::is_leaf", {x}).to_bool());
  EXPECT_FALSE(run("aten::is_leaf", {y}).to_bool());
  EXPECT_EQ(run("aten::output_nr", {y}).to_int(), 0);
  EXPECT_FALSE(run("aten::retains_grad", {y}).to_bool());
  run("aten::retain_grad", {y});
  EXPECT_TRUE(run("aten::retains_grad", {y}).to_bool());
  EXPECT_TRUE(run("prim::grad", {y}).is_none());
  run("aten::backward", {sum(y)});
  EXPECT_EQ(numbers(run("prim::grad", {y}).to_tensor()), (Numbers{1, 1}));
  EXPECT_EQ(numbers(run("prim::grad", {x}).to_tensor()), (Numbers{2, 2}));
  const Tensor data = run("aten::data", {y}).to_tensor();
  EXPECT_FALSE(requires_grad(data));
  EXPECT_EQ(data.raw_data(), y.raw_data());
  run("aten::requires_grad_", {x, false});
  EXPECT_FALSE(requires_grad(scale(x, 2)));
}

TEST(AutogradOps, Detach) {
  const Tensor y = scale(leaf({1, 2}), 2);
  EXPECT_FALSE(requires_grad(run("aten::detach", {y}).to_tensor()));
  EXPECT_FALSE(requires_grad(run("prim::data", {y}).to_tensor()));
  EXPECT_THAT(error_of([&] { run("aten::detach_", {slice(y, 0, 1)}); }), HasSubstr("Can't detach views in-place."));
  EXPECT_TRUE(run("aten::detach_", {y}).is_same(y));
  EXPECT_FALSE(requires_grad(y));
  EXPECT_TRUE(is_leaf(y));
}

TEST(AutogradOps, Backward) {
  const Tensor x = leaf({1, 2});
  const Tensor y = mul(x, x);
  run("aten::backward", {y, constant({1, 10}), true});
  run("aten::backward", {y, constant({1, 10}), Value(), true});  // keeps the graph, since it is recorded
  run("aten::backward", {y, constant({1, 10})});
  EXPECT_EQ(numbers(grad(x)), (Numbers{6, 120}));
  EXPECT_THAT(error_of([&] {
                run("aten::backward", {y, constant({1, 1})});
              }),
              HasSubstr("Trying to backward through the graph a second time"));
  set_grad(x, {});
  const Value none_and_one = ops::make_list(ops::optional_type(ops::tensor_type()), {Value(), constant({1, 1})});
  run("aten::backward.TensorList", {ops::make_tensor_list({sum(x), mul(x, x)}), none_and_one});
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 5}));
}

TEST(AutogradOps, Grad) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = sum(mul(mul(x, x), x));
  const Value first =
      run("aten::grad", {ops::make_tensor_list({y}), ops::make_tensor_list({x}), Value(), Value(), true});
  const Tensor of_x = first.to_list()->items.at(0).to_tensor();
  EXPECT_EQ(numbers(of_x), (Numbers{3, 12}));
  EXPECT_TRUE(requires_grad(of_x));
  const Value second = run(
      "aten::grad", {ops::make_tensor_list({sum(of_x)}), ops::make_tensor_list({x, w}), Value(), Value(), false, true});
  EXPECT_EQ(numbers(second.to_list()->items.at(0).to_tensor()), (Numbers{6, 12}));
  EXPECT_TRUE(second.to_list()->items.at(1).is_none());
  EXPECT_FALSE(grad(x).defined());
}

TEST(AutogradOps, Modes) {
  const GradModeGuard restores(execution_context().grad_mode);
  EXPECT_TRUE(run("aten::is_grad_enabled", {}).to_bool());
  run("aten::set_grad_enabled", {false});
  EXPECT_FALSE(run("aten::is_grad_enabled", {}).to_bool());
  EXPECT_FALSE(requires_grad(scale(leaf({1}), 2)));
}

TEST(AutogradOps, GradientsThatThereAreNot) {
  const Tensor x = leaf({0.5, 1.5, 2.5, 3.5, 4.5, 5.5}, {3, 2}), wide = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto complex = [](const Dims& sizes) {
    const Tensor out = ops::call_by_name("aten::ones", sizes, DType::kComplex128, Value(), Value(), Value());
    set_requires_grad(out);
    return out;
  };
  const Tensor few = complex({2});
  struct Row {
    const char* op;
    std::vector<Value> arguments;
    size_t result;
    const char* says;
  };
  const std::vector<Row> rows{
      {"aten::special_zeta", {x, x}, 0, "the derivative of aten::special_zeta for argument 0 is not implemented"},
      {"aten::igamma", {x, x}, 0, "the derivative of aten::igamma for argument 0 is not implemented"},
      {"aten::igammac", {x, x}, 0, "the derivative of aten::igammac for argument 0 is not implemented"},
      {"aten::linalg_qr", {x, "r"}, 1, "The derivative of linalg.qr depends on Q"},
      {"aten::linalg_qr", {x, "complete"}, 0, "is not differentiable when mode='complete' and nrows > ncols"},
      {"aten::linalg_householder_product",
       {complex({3, 2}), few},
       0,
       "derivative for linalg_householder_product of complex tensors is not implemented"},
      {"aten::geqrf", {x}, 0, "derivative for aten::geqrf is not implemented"},
  };
  for (const Row& row : rows) {
    const auto backwards = [&] {
      const ops::Op& op = ops::get_op(row.op);
      const Tensor y = ops::run(op, ops::bind(op, row.arguments)).at(row.result).to_tensor();
      backward(sum(ops::call_by_name("aten::abs", y)));
    };
    EXPECT_THAT(error_of(backwards), HasSubstr(row.says)) << row.op;
  }
  // Cases in which the gradient exists.
  backward(sum(ops::run(ops::get_op("aten::linalg_qr"), std::vector<Value>{wide, "complete"}).at(0).to_tensor()));
  backward(sum(ops::call_by_name("aten::special_zeta", constant({2, 3}), leaf({1, 2}))));
  EXPECT_EQ(grad(wide).sizes(), wide.sizes());
}

}  // namespace
}  // namespace tensord::autograd::autograd_test
