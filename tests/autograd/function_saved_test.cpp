// Tensors saved by custom functions: arguments, results, mutated tensors and views of them, with and without
// saved-tensor hooks.
#include "core/autograd/function.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::function_saved_test {
namespace {

using Tensors = std::vector<Tensor>;

BackwardOptions creating() {
  BackwardOptions options;
  options.create_graph = true;
  return options;
}

// Keep tensors unchanged, and count them.
int packed = 0;
SavedTensorHooks counting() {
  packed = 0;
  return {[](const Tensor& tensor) -> std::any { return ++packed, tensor; },
          [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); }};
}

// Runs the test without hooks, then with hooks.
template <class Fn>
void with_and_without_hooks(Fn&& test) {
  test();
  const SavedTensorHooksScope scope(counting());
  test();
  EXPECT_GT(packed, 0);
}

struct KeepsMuch : Function<KeepsMuch> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    EXPECT_TRUE(context.saved().empty());
    context.save_for_backward({x, Tensor(), Tensor::meta(Dims{3}, DType::kFloat64)});
    EXPECT_EQ(context.saved().size(), 3u);
    EXPECT_TRUE(context.saved()[0].is_same(x));
    return scale(x, 2);
  }
  static Tensors backward(FunctionContext& context, Tensors grads) {
    const Tensors saved = context.saved();
    EXPECT_EQ(saved.size(), 3u);
    EXPECT_FALSE(saved[1].defined());
    EXPECT_EQ(saved[2].sizes(), Dims{3});
    return {mul(scale(grads[0], 2), saved[0])};
  }
};

TEST(FunctionSaves, WhatForwardReadsTooAndNothing) {
  const Tensor x = leaf({3, 4});
  with_and_without_hooks([&] {
    backward(sum(KeepsMuch::apply(x)));
    EXPECT_EQ(numbers(grad(x)), (Numbers{6, 8}));
    set_grad(x, {});
  });
  EXPECT_EQ(packed, 1);
}

TEST(FunctionSaves, NothingOfInferenceMode) {
  const Tensor made = [] {
    const InferenceModeGuard inference;
    return constant({1, 2});
  }();
  const Tensor x = leaf({1, 2});
  struct Keeps : Function<Keeps> {
    static Tensor forward(FunctionContext& context, const Tensor& x, const Tensor& other) {
      context.save_for_backward({other});
      return scale(x, 1);
    }
    static Tensors backward(FunctionContext&, Tensors grads) { return {grads[0], {}}; }
  };
  EXPECT_EQ(error_of([&] { Keeps::apply(x, constant({1, 2})); }), "no error");
  EXPECT_THAT(error_of([&] { Keeps::apply(x, made); }), HasSubstr("Inference tensors cannot be saved for backward."));
  const GradModeGuard mode({true, true});  // recorded in inference mode
  EXPECT_EQ(error_of([&] { Keeps::apply(x, made); }), "no error");
  EXPECT_EQ(error_of([&] { mul(x, made); }), "no error");
}

// Has two results, and saves the second.
struct KeepsItsSecond : Function<KeepsItsSecond> {
  static Tensors forward(FunctionContext& context, const Tensor& x) {
    const Tensor y = ops::call_by_name("aten::exp", x);
    context.save_for_backward({y});
    return {scale(x, 5), y};
  }
  static Tensors backward(FunctionContext& context, Tensors grads) {
    return {add(scale(grads[0], 5), mul(grads[1], context.saved().at(0)))};
  }
};

TEST(FunctionSaves, AResultWithItsHistoryAndWithoutACycle) {
  with_and_without_hooks([] {
    NodePtr node;
    const Tensor x = leaf({0});
    {
      const Tensor y = KeepsItsSecond::apply(x)[1];
      const Tensor first = grad(std::vector{y}, std::vector{x}, {}, creating()).at(0);
      EXPECT_EQ(numbers(first), (Numbers{1}));
      EXPECT_EQ(numbers(grad(std::vector{first}, std::vector{x}).at(0)), (Numbers{1}));
      node = grad_fn(y);
    }
    EXPECT_EQ(node->use_count(), 1u);
  });
}

// Overwrites its argument with its exponential, and saves that.
struct Exponential : Function<Exponential> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    ops::call_by_name("aten::exp_", x);
    context.mark_dirty({x});
    context.save_for_backward({x, Tensor()});
    return x;
  }
  static Tensors backward(FunctionContext& context, Tensors grads) { return {mul(grads[0], context.saved().at(0))}; }
};

TEST(FunctionSaves, WhatItWrote) {
  with_and_without_hooks([] {
    for (const bool is_part : {false, true}) {
      SCOPED_TRACE(is_part);
      NodePtr node;
      const Tensor x = leaf({0, 0});
      {
        const Tensor y = scale(x, 2), target = is_part ? slice(y, 1, 2) : y;
        Exponential::apply(target);
        const Tensor first = grad(std::vector{sum(y)}, std::vector{x}, {}, creating()).at(0);
        EXPECT_EQ(numbers(first), (Numbers{2, 2}));
        const Tensor second = grad(std::vector{sum(first)}, std::vector{x}).at(0);
        EXPECT_EQ(numbers(second), (is_part ? Numbers{0, 4} : Numbers{4, 4}));
        node = grad_fn(y);
      }
      EXPECT_EQ(node->use_count(), 1u);
    }
  });
}

// Saves a view of what it writes.
struct KeepsAPart : Function<KeepsAPart> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    ops::call_by_name("aten::exp_", x);
    context.mark_dirty({x});
    context.save_for_backward({slice(x, 0, 1)});
    return x;
  }
  static Tensors backward(FunctionContext& context, Tensors grads) { return {mul(grads[0], context.saved().at(0))}; }
};

TEST(FunctionSaves, AViewOfWhatItWroteLeavesNoCycle) {
  NodePtr node;
  const Tensor x = leaf({0, 0});
  {
    const Tensor y = scale(x, 2);
    KeepsAPart::apply(y);
    backward(sum(y), {}, {.retain_graph = true});
    EXPECT_EQ(numbers(grad(x)), (Numbers{2, 2}));
    node = grad_fn(y);
  }
  EXPECT_EQ(node->use_count(), 1u);
}

// Counts calls in an integer tensor.
struct Counts : Function<Counts> {
  static Tensors forward(FunctionContext& context, const Tensor& x, const Tensor& count) {
    add_in_place(count, constant({1}, Dims{1}, DType::kInt64));
    context.mark_dirty({count});
    context.save_for_backward({count});
    return {scale(x, 1), count};
  }
  static Tensors backward(FunctionContext& context, Tensors grads) {
    const Tensor count = context.saved().at(0);
    EXPECT_FALSE(requires_grad(count));
    return {mul(grads[0], count), {}};
  }
};

TEST(FunctionSaves, WrittenIntegersWithoutAHistory) {
  with_and_without_hooks([] {
    const Tensor x = leaf({5}), count = constant({2}, Dims{1}, DType::kInt64);
    set_grad(count, constant({0}, Dims{1}, DType::kInt64));  // gives the tensor autograd metadata
    backward(Counts::apply(x, count)[0], {}, creating());
    EXPECT_EQ(numbers(grad(x)), (Numbers{3}));
  });
}

// Overwrites its second argument, which has no gradient from then on.
struct Overwrites : Function<Overwrites> {
  static Tensors forward(FunctionContext& context, const Tensor& x, const Tensor& y) {
    ops::call_by_name("aten::fill_.Scalar", y, 7);
    context.mark_dirty({y});
    context.mark_non_differentiable({y});
    context.save_for_backward({y});
    return {scale(x, 1), y};
  }
  static Tensors backward(FunctionContext& context, Tensors grads) {
    const Tensor y = context.saved().at(0);
    EXPECT_FALSE(requires_grad(y));
    return {mul(grads[0], y), {}};
  }
};

TEST(FunctionSaves, WhatItWroteWithoutAGradient) {
  with_and_without_hooks([] {
    static const ops::Op& var_mean = ops::get_op("aten::var_mean");
    const Tensor x = leaf({5});
    const Tensor mean = ops::run(var_mean, ops::bind(var_mean, {leaf({1, 2}), true}))[1].to_tensor();
    EXPECT_EQ(output_nr(mean), 1u);
    backward(Overwrites::apply(x, mean)[0], {}, creating());
    EXPECT_EQ(numbers(grad(x)), (Numbers{7}));
  });
}

}  // namespace
}  // namespace tensord::autograd::function_saved_test
