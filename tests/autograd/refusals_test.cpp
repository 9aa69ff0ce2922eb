// Calls that autograd refuses: each breaks one rule, and is paired with the nearest valid call.
#include <cmath>

#include "core/autograd/function.h"
#include "core/autograd/gradcheck.h"
#include "core/autograd/hooks/post_accumulate.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "core/tensor/grad_mode.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::refusals_test {
namespace {

using Tensors = std::vector<Tensor>;

std::string backward_error(const Tensors& roots, const Tensors& gradients = {}, BackwardOptions options = {}) {
  return error_of([&] { backward(roots, gradients, options); });
}
std::string grad_error(const Tensors& outputs, const Tensors& inputs, bool allow_unused = false) {
  return error_of([&] { grad(outputs, inputs, {}, {}, allow_unused); });
}

TEST(AutogradRefusals, RootsOfAPass) {
  const auto root = [] { return sum(leaf({1, 2})); };
  const Tensor one = Tensor::scalar(1.0, DType::kFloat64);
  EXPECT_EQ(backward_error({root()}), "no error");
  EXPECT_EQ(backward_error({root()}, {one}), "no error");
  EXPECT_EQ(backward_error({root(), root()}, {one}), "no error");  // the second gradient defaults to one
  EXPECT_EQ(backward_error({root()}, {one, one}), "got 1 tensors and 2 gradients");
  const std::string without = " of tensors does not require grad and does not have a grad_fn";
  EXPECT_EQ(backward_error({root(), constant({1})}), "element 1" + without);
  EXPECT_EQ(backward_error({Tensor()}), "element 0" + without);
  EXPECT_EQ(backward_error({scale(leaf({1, 2}), 2)}), "grad can be implicitly created only for scalar outputs");
  const Tensor complex = ops::call_by_name("aten::complex", leaf({1}, Dims{}), leaf({2}, Dims{}));
  EXPECT_THAT(backward_error({complex}), HasSubstr("only for real scalar outputs but got complex128"));
  EXPECT_THAT(backward_error({scale(leaf({1, 2}), 2)}, {constant({1})}),
              HasSubstr("Mismatch in shape: grad_output[0] has a shape of [1] and output[0] has a shape of [2]"));
}

TEST(AutogradRefusals, LeavesOfAPass) {
  const Tensor x = leaf({1, 2}), y = scale(x, 2), other = leaf({1});
  const auto to = [&](const Tensor& input) {
    BackwardOptions options;
    options.retain_graph = true;
    options.inputs = {&input, 1};
    return backward_error({sum(y)}, {}, options);
  };
  EXPECT_EQ(to(x), "no error");
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 2}));
  EXPECT_EQ(to(other), "no error");
  EXPECT_EQ(to(y), "backward: only leaves can be given as inputs");
  EXPECT_EQ(to(constant({1})), "One of the differentiated Tensors does not require grad");
}

TEST(AutogradRefusals, InputsOfGradients) {
  const auto f = [](const Tensor& x) { return sum(scale(x, 2)); };
  const Tensor x = leaf({1, 2}), other = leaf({1});
  EXPECT_EQ(grad_error({f(x)}, {x}), "no error");
  EXPECT_EQ(grad_error({f(x)}, {}), "grad requires non-empty inputs.");
  EXPECT_EQ(grad_error({f(x)}, {constant({1})}), "One of the differentiated Tensors does not require grad");
  EXPECT_EQ(grad_error({f(x)}, {Tensor()}), "One of the differentiated Tensors does not require grad");
  EXPECT_THAT(grad_error({f(x)}, {x, other}), HasSubstr("appears to not have been used in the graph"));
  EXPECT_EQ(grad_error({f(x)}, {x, other}, true), "no error");
}

TEST(AutogradRefusals, GradientsThatAreSet) {
  const Tensor x = leaf({1, 2});
  const auto refusal = [&](const Tensor& gradient) { return error_of([&] { set_grad(x, gradient); }); };
  EXPECT_EQ(refusal(constant({3, 4})), "no error");
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 4}));
  EXPECT_EQ(refusal(x), "can't assign Variable as its own grad");
  EXPECT_EQ(refusal(constant({1, 2}, Dims{2}, DType::kFloat32)), "assigned grad has data of a different type");
  EXPECT_EQ(refusal(constant({1})), "assigned grad has data of a different size");
  EXPECT_EQ(refusal(constant({1, 2}, Dims{2, 1})), "assigned grad has data of a different size");
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 4}));
  EXPECT_EQ(refusal(Tensor()), "no error");
  EXPECT_FALSE(grad(x).defined());
  const Tensor unknown = constant({1});
  set_grad(unknown, Tensor());
  EXPECT_FALSE(unknown.impl()->autograd);  // it has no autograd metadata, as before
}

TEST(AutogradRefusals, Flags) {
  const Tensor x = leaf({1, 2}), y = scale(x, 2);
  EXPECT_THAT(error_of([&] { set_requires_grad(y, false); }), HasSubstr("of leaf variables"));
  EXPECT_EQ(error_of([&] { set_requires_grad(y, true); }), "no error");
  const Tensor ints = constant({1}, Dims{1}, DType::kInt64);
  EXPECT_THAT(error_of([&] { set_requires_grad(ints, true); }), HasSubstr("floating point and complex dtype"));
  EXPECT_EQ(error_of([&] { set_requires_grad(ints, false); }), "no error");
  EXPECT_THAT(error_of([&] { retain_grad(constant({1})); }), HasSubstr("can't retain_grad"));
  EXPECT_EQ(error_of([&] { retain_grad(x); }), "no error");
  EXPECT_FALSE(retains_grad(x));  // a leaf keeps its gradient anyway
  retain_grad(y);
  EXPECT_TRUE(retains_grad(y));
  EXPECT_THAT(error_of([&] { register_hook(constant({1}), {}); }), HasSubstr("doesn't require gradient"));
  EXPECT_THAT(error_of([&] { detach_in_place(select(x, 0)); }), HasSubstr("Can't detach views in-place"));
  detach_in_place(y);
  EXPECT_FALSE(requires_grad(y));
  EXPECT_FALSE(retains_grad(y));
  EXPECT_EQ(error_of([&] { detach_in_place(constant({1})); }), "no error");
}

// A view made without grad mode has no graph edge; it takes part in a gradient only through its base.
TEST(AutogradRefusals, ViewsMadeWithoutGrad) {
  const Tensor x = leaf({1, 2});
  const Tensor part = [&] {
    const NoGradGuard no_grad;
    return slice(x, 0, 1);
  }();
  ASSERT_TRUE(requires_grad(part));
  EXPECT_EQ(backward_error({part}), "element 0 of tensors does not require grad and does not have a grad_fn");
  EXPECT_EQ(grad_error({sum(scale(x, 2))}, {part}), "One of the differentiated Tensors does not require grad");
  EXPECT_EQ(error_of([&] { register_hook(part, {}); }),
            "cannot register a hook on a view that was made in no_grad mode");
}

TEST(AutogradRefusals, GradientsOfAnotherKind) {
  EXPECT_EQ(backward_error({scale(leaf({1, 2}), 2)}, {constant({1, 2}, Dims{2}, DType::kInt64)}),
            "invalid gradient at index 0 - got int64");
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(backward_error({scale(x, 2)}, {constant({1, 2}, Dims{2}, DType::kFloat32)}), "no error");
  EXPECT_EQ(grad(x).dtype(), DType::kFloat64);
}

// The functional variant of addr broadcasts; the in-place variant keeps its shape.
TEST(AutogradRefusals, WritesThatWouldBroadcast) {
  const Tensor rows = constant({1, 2}), columns = constant({3, 4, 5});
  const auto write = [&](const Dims& sizes) {
    const Tensor x = leaf(Numbers(static_cast<size_t>(sizes[0] * sizes[1]), 1), sizes), y = scale(x, 2);
    return error_of([&] {
      ops::call_by_name("aten::addr_", y, rows, columns);
      backward(sum(y));
      EXPECT_EQ(grad(x).sizes(), sizes);
    });
  };
  EXPECT_EQ(write(Dims{2, 3}), "no error");
  EXPECT_EQ(write(Dims{1, 3}), "aten::addr_: output with shape [1, 3] doesn't match the broadcast shape [2, 3]");
}

TEST(AutogradRefusals, InferenceTensors) {
  const Tensor made = [] {
    const InferenceModeGuard inference;
    return constant({1, 2});
  }();
  const Tensor x = leaf({1, 2});
  const auto multiply = [&] { return mul(x, made); };
  EXPECT_THAT(error_of(multiply), HasSubstr("Inference tensors cannot be saved for backward."));
  EXPECT_EQ(error_of([&] { backward(sum(add(x, made))); }), "no error");  // nothing of it is saved
  EXPECT_THAT(error_of([&] { scale_in_place(made, 2); }), HasSubstr("Inplace update to inference tensor outside"));
  EXPECT_THAT(error_of([&] { set_requires_grad(made); }), HasSubstr("outside InferenceMode is not allowed"));
  const InferenceModeGuard inference;
  EXPECT_EQ(error_of(multiply), "no error");
  EXPECT_EQ(error_of([&] { scale_in_place(made, 2); }), "no error");
  EXPECT_EQ(error_of([&] { set_requires_grad(made); }), "no error");
  EXPECT_TRUE(requires_grad(made));
}

TEST(AutogradRefusals, HalfAPairOfSavedTensorHooks) {
  const SavedTensorHooks both = save_on_cpu();
  EXPECT_EQ(error_of([&] { const SavedTensorHooksScope scope(both); }), "no error");
  const std::string message = "SavedTensorHooks: both pack and unpack must be given";
  EXPECT_EQ(error_of([&] { const SavedTensorHooksScope scope({both.pack, nullptr}); }), message);
  EXPECT_EQ(error_of([&] { const SavedTensorHooksScope scope({nullptr, both.unpack}); }), message);
  EXPECT_FALSE(hooks_are_set());
}

TEST(AutogradRefusals, HooksBehindLeaves) {
  const auto refusal = [](const Tensor& tensor) {
    return error_of([&] { register_post_accumulate_grad_hook(tensor, [](const Tensor&) {}); });
  };
  EXPECT_EQ(refusal(leaf({1})), "no error");
  const std::string message =
      "post accumulate grad hooks cannot be registered on tensors that are not leaves or require no gradient";
  EXPECT_EQ(refusal(constant({1})), message);
  EXPECT_EQ(refusal(scale(leaf({1}), 2)), message);
}

// ---- custom functions

struct Settings {
  bool returns_undefined = false;
  size_t results = 1, gradients = 2;
  bool gives_number_a_gradient = false;
};
Settings settings;

// Takes a tensor and a number.
struct Odd : Function<Odd> {
  static Tensors forward(FunctionContext&, const Tensor& x, double) {
    Tensors out(settings.results, scale(x, 1));
    if (settings.returns_undefined) out.back() = Tensor();
    return out;
  }
  static Tensors backward(FunctionContext& context, Tensors grads) {
    EXPECT_THAT(error_of([&] { context.needs_input_grad(2); }), HasSubstr("there is no argument 2"));
    EXPECT_TRUE(context.needs_input_grad(0));
    EXPECT_FALSE(context.needs_input_grad(1));
    Tensors out(settings.gradients);
    out[0] = grads[0];
    if (settings.gives_number_a_gradient) out[1] = grads[0];
    return out;
  }
};

std::string function_error(const Settings& changed) {
  settings = changed;
  const std::string error = error_of([] { backward(sum(Odd::apply(leaf({1, 2}), 3.0).at(0))); });
  settings = {};
  return error;
}

TEST(AutogradRefusals, FunctionsOfUsers) {
  EXPECT_EQ(function_error({}), "no error");
  EXPECT_EQ(function_error({.gradients = 3}), "no error");  // extra gradients must be undefined
  EXPECT_EQ(function_error({.results = 2}), "no error");
  EXPECT_THAT(function_error({.gradients = 1}),
              HasSubstr("OddBackward returned an incorrect number of gradients (expected 2, got 1)"));
  EXPECT_THAT(function_error({.gives_number_a_gradient = true}),
              HasSubstr("returned a gradient different from None at position 2"));
  EXPECT_THAT(function_error({.returns_undefined = true}), HasSubstr("must return defined tensors"));
}

// Writes its argument and returns `settings.results` tensors: the argument and scaled copies.
struct WritesInput : Function<WritesInput> {
  static Tensors forward(FunctionContext& context, const Tensor& x) {
    context.mark_dirty({x});
    Tensors out{scale_in_place(x, 2)};
    while (out.size() < settings.results) out.push_back(scale(x, 1));
    return out;
  }
  static Tensors backward(FunctionContext&, Tensors grads) { return {scale(grads[0], 2)}; }
};

TEST(AutogradRefusals, FunctionsThatWriteViews) {
  const auto write = [](const Tensor& x, size_t results) {
    settings.results = results;
    const std::string error = error_of([&] { WritesInput::apply(x); });
    settings = {};
    return error;
  };
  const auto base = [] { return scale(leaf({1, 2}), 3); };
  EXPECT_EQ(write(base(), 1), "no error");
  EXPECT_EQ(write(base(), 2), "no error");
  EXPECT_EQ(write(slice(base(), 0, 1), 1), "no error");
  EXPECT_THAT(write(slice(base(), 0, 1), 2), HasSubstr("your Function cannot return more than one Tensor"));
  EXPECT_EQ(write(slice(constant({1, 2}), 0, 1), 2), "no error");  // nothing is recorded
}

TEST(AutogradRefusals, HooksOfNodes) {
  const Tensor x = leaf({1, 2}), y = scale(x, 2);
  const auto pre = [&](size_t count) {
    const Tensor z = scale(x, 2);
    const HookHandle handle = grad_fn(z)->register_prehook(
        [count](const Tensors& gradients) { return std::optional(Tensors(count, gradients[0])); });
    return backward_error({sum(z)});
  };
  EXPECT_EQ(pre(1), "no error");
  EXPECT_EQ(pre(2), "a node's pre-hook returned 2 gradients, expected 1");
  EXPECT_EQ(pre(0), "a node's pre-hook returned 0 gradients, expected 1");
}

// ---- gradcheck

TEST(AutogradRefusals, FunctionsThatChange) {
  int calls = 0;
  const auto with = [&](auto function) {
    calls = 0;
    return error_of([&] { gradcheck(function, {leaf({0.5, 2})}); });
  };
  EXPECT_EQ(with([&](const Tensors& x) { return Tensors{mul(x[0], x[0])}; }), "no error");
  EXPECT_THAT(with([&](const Tensors& x) { return Tensors(++calls > 1 ? 2 : 1, mul(x[0], x[0])); }),
              HasSubstr("gradcheck: the function gave 1 outputs, then 2"));
  EXPECT_THAT(with([&](const Tensors& x) { return Tensors{++calls > 1 ? sum(x[0]) : mul(x[0], x[0])}; }),
              HasSubstr("gradcheck: the shape of output 0 changed from [2] to []"));
  EXPECT_THAT(with([&](const Tensors& x) {
                return Tensors{x[0].to(DType::kFloat64),
                               ops::call_by_name("aten::to.dtype", x[0], DType::kFloat32, false, false, ops::Value())};
              }),
              HasSubstr("gradcheck: output 1 must be float64, got float32"));
  EXPECT_THAT(error_of([&] { gradgradcheck([](const Tensors& x) { return Tensors{detach(x[0])}; }, {leaf({1})}); }),
              HasSubstr("no output of the function has a gradient"));
}

double drift = 0;
struct Drifting : Function<Drifting> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static Tensors backward(FunctionContext&, Tensors grads) {
    return {scale(grads[0], 1 + (drift = drift > 0 ? 0 : 1e-7))};
  }
};

TEST(AutogradRefusals, PassesThatDiffer) {
  const TensorFunction function = [](const Tensors& x) { return Tensors{Drifting::apply(x[0])}; };
  GradcheckOptions options;
  EXPECT_THAT(error_of([&] { gradcheck(function, {leaf({0.5})}, options); }), HasSubstr("Backward is not reentrant"));
  options.nondet_tol = 1e-6;
  EXPECT_EQ(error_of([&] { gradcheck(function, {leaf({0.5})}, options); }), "no error");
}

// Two results, one of which may have no gradient.
struct Pair : Function<Pair> {
  static Tensors forward(FunctionContext& context, const Tensor& x) {
    context.set_materialize_grads(false);
    return {scale(x, 2), scale(x, 3)};
  }
  static Tensors backward(FunctionContext&, Tensors grads) {
    if (!grads[1].defined()) return {scale(grads[0], 7)};  // wrong: 2 is correct
    return {add(scale(grads[0], 2), scale(grads[1], 3))};
  }
};

TEST(AutogradRefusals, GradientsThatDoNotFlow) {
  const TensorFunction function = [](const Tensors& x) { return Tensors(Pair::apply(x[0])); };
  EXPECT_NE(error_of([&] { gradcheck(function, {leaf({0.5})}); }), "no error");
}

// The gradients may be wrong if both results have one.
struct WrongTogether : Function<WrongTogether> {
  static Tensors forward(FunctionContext& context, const Tensor& x) {
    context.set_materialize_grads(false);
    return {scale(x, 2), scale(x, 3)};
  }
  static Tensors backward(FunctionContext&, Tensors grads) {
    if (!grads[1].defined()) return {scale(grads[0], 2)};
    if (!grads[0].defined()) return {scale(grads[1], 3)};
    return {add(scale(grads[0], first), scale(grads[1], second))};
  }
  static inline double first = 2, second = 3;  // the correct ones
};

TEST(AutogradRefusals, GradientsThatFlowTogether) {
  const TensorFunction function = [](const Tensors& x) { return Tensors(WrongTogether::apply(x[0])); };
  const auto with = [&](double first, double second) {
    WrongTogether::first = first;
    WrongTogether::second = second;
    return error_of([&] { gradcheck(function, {leaf({0.5})}); });
  };
  EXPECT_EQ(with(2, 3), "no error");
  EXPECT_THAT(with(5, 3), HasSubstr("the gradient of input 0 is 2 where only output 0 has one, and 5 with zeros"));
  EXPECT_THAT(with(2, 4),
              HasSubstr("Expected backward function to handle undefined output grads: the gradient of input 0 is 3 "
                        "where only output 1 has one, and 4 with zeros for the others"));
  GradcheckOptions options;
  options.checks_undefined_grad = false;
  EXPECT_EQ(error_of([&] { gradcheck(function, {leaf({0.5})}, options); }), "no error");
}

TEST(AutogradRefusals, InputsThatGradcheckLeavesOut) {
  const auto twice = [](const Tensors& x) { return Tensors{scale(x[0], 2), Tensor(), constant({1})}; };
  EXPECT_EQ(error_of([&] {
              gradcheck(twice, {leaf({0.5}), Tensor(), constant({1}, Dims{1}, DType::kFloat32)});
            }),
            "no error");
  // A one-row tensor whose row stride is 0.
  const Tensor row = constant({1, 2}).as_view({1, 2}, {0, 1}, 0);
  set_requires_grad(row);
  EXPECT_EQ(error_of([&] { gradcheck(twice, {row}); }), "no error");
  const Tensor x = leaf({0.5, 2});
  register_hook(x, [](const Tensor& gradient) { return slice(gradient, 0, 1); });
  EXPECT_THAT(error_of([&] { gradcheck(twice, {x}); }),
              HasSubstr("gradcheck: the gradient of float64[2] is float64[1]"));
}

struct GivesNan : Function<GivesNan> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static Tensors backward(FunctionContext&, Tensors grads) { return {scale(grads[0], NAN)}; }
};

// NaN on both sides is agreement; on one side it is not.
TEST(AutogradRefusals, GradientsThatAreNoNumbers) {
  const auto root = [](const Tensors& x) { return Tensors{ops::call_by_name("aten::sqrt", x[0])}; };
  EXPECT_EQ(error_of([&] { gradcheck(root, {leaf({-1})}); }), "no error");
  const auto one_side = [](const Tensors& x) { return Tensors{GivesNan::apply(x[0])}; };
  EXPECT_THAT(error_of([&] { gradcheck(one_side, {leaf({4})}); }), HasSubstr("Jacobian mismatch"));
}

// Large Jacobians are shown by their first rows and columns.
TEST(AutogradRefusals, JacobiansAreShownInPart) {
  const auto text = [](size_t size) {
    const TensorFunction wrong = [](const Tensors& x) { return Tensors{GivesNan::apply(x[0])}; };
    return error_of([&] { gradcheck(wrong, {leaf(Numbers(size, 0.5))}); });
  };
  EXPECT_EQ(text(8).find("…"), std::string::npos);
  EXPECT_THAT(text(9), HasSubstr("…"));
}

}  // namespace
}  // namespace tensord::autograd::refusals_test
