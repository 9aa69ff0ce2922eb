// Functions with a custom backward.
#include "core/autograd/function.h"

#include "tests/autograd/support.h"

struct OfNoNamespace {};

namespace tensord::autograd::function_test {
namespace {

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    EXPECT_FALSE(is_grad_enabled());
    context.save_for_backward({x});
    return mul(mul(x, x), x);
  }
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    const Tensor x = context.saved().at(0);
    return {mul(grads[0], scale(mul(x, x), 3))};
  }
};

BackwardOptions creating() {
  BackwardOptions options;
  options.create_graph = true;
  return options;
}

TEST(Function, ForwardAndBackward) {
  const Tensor x = leaf({2, 3});
  const Tensor y = Cube::apply(x);
  EXPECT_EQ(numbers(y), (Numbers{8, 27}));
  EXPECT_EQ(name_of(grad_fn(y)), "CubeBackward");
  const Tensor first = grad(std::vector{sum(y)}, std::vector{x}, {}, creating()).at(0);
  EXPECT_EQ(numbers(first), (Numbers{12, 27}));
  EXPECT_EQ(numbers(grad(std::vector{sum(first)}, std::vector{x}).at(0)), (Numbers{12, 18}));
  const NoGradGuard guard;
  EXPECT_FALSE(requires_grad(Cube::apply(x)));
}

TEST(Function, SavedTensorsAreCheckedAndReleased) {
  const Tensor x = leaf({2});
  const Tensor a = scale(x, 1), y = Cube::apply(a);
  add_in_place(a, constant({1}));
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("is at version 1; expected version 0 instead"));
  const Tensor z = Cube::apply(x);
  backward(z);
  EXPECT_THAT(error_of([&] { backward(z); }), HasSubstr("Trying to backward through the graph a second time"));
}

struct SavesItsResult : Function<SavesItsResult> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    const Tensor y = ops::call_by_name("aten::exp", x);
    context.save_for_backward({y});
    return y;
  }
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    return {mul(grads[0], context.saved().at(0))};
  }
};

TEST(Function, ASavedResultIsCheckedToo) {
  const Tensor x = leaf({1, 2});
  const Tensor y = SavesItsResult::apply(x);
  add_in_place(y, constant({1, 1}));
  EXPECT_THAT(error_of([&] { backward(sum(y)); }), HasSubstr("is at version 1; expected version 0 instead"));
}

TEST(Function, ASavedResultKeepsItsHistoryWithoutACycle) {
  const Tensor x = leaf({0});
  NodePtr node;
  {
    const Tensor y = SavesItsResult::apply(x);
    Tensor gradient = grad(std::vector{y}, std::vector{x}, {}, creating()).at(0);
    gradient = grad(std::vector{gradient}, std::vector{x}, {}, creating()).at(0);
    EXPECT_EQ(numbers(gradient), (Numbers{1}));
    node = grad_fn(y);
  }
  EXPECT_EQ(node->use_count(), 1u);
}

TEST(Function, IsCalledAsItsTypeIs) {
  EXPECT_EQ(function_name(typeid(Cube)), "Cube");
  EXPECT_EQ(function_name(typeid(OfNoNamespace)), "OfNoNamespace");
}

struct Mixed : Function<Mixed> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& a, double factor,
                                     const std::optional<Tensor>& b, const std::vector<Tensor>& list) {
    needed.clear();
    for (size_t i = 0; i < 3 + list.size(); ++i) needed.push_back(context.needs_input_grad(i));
    context.data["factor"] = factor;
    context.data["has_b"] = b.has_value();
    context.data["lists"] = static_cast<int64_t>(list.size());
    const Tensor order = ops::call_by_name("aten::argsort", a);
    const Tensor twin = scale(a, 1);
    context.mark_non_differentiable({twin});
    Tensor total = scale(a, factor);
    if (b) total = add(total, *b);
    for (const Tensor& item : list) total = add(total, item);
    return {total, order, twin, scale(a, 2)};
  }
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    came = grads;
    needed_backward.clear();
    std::vector<Tensor> out{add(scale(grads[0], context.data["factor"].to_float()), scale(grads[3], 2)), {}, {}};
    if (context.data["has_b"].to_bool()) out[2] = grads[0];
    for (int64_t i = 0; i < context.data["lists"].to_int(); ++i) out.push_back(grads[0]);
    for (size_t i = 0; i < out.size(); ++i) needed_backward.push_back(context.needs_input_grad(i));
    return out;
  }
  static inline std::vector<bool> needed, needed_backward;
  static inline std::vector<Tensor> came;
};

TEST(Function, ArgumentsOfEveryKind) {
  const Tensor a = leaf({1, 2}), c = leaf({5, 6}), d = constant({7, 8});
  const std::vector<Tensor> out = Mixed::apply(a, 3.0, std::optional<Tensor>(), std::vector{c, d});
  EXPECT_THAT(Mixed::needed, ElementsAre(true, false, false, true, false));
  EXPECT_TRUE(requires_grad(out[0]));
  EXPECT_FALSE(requires_grad(out[1]));
  EXPECT_FALSE(requires_grad(out[2]));
  EXPECT_EQ(output_nr(out[3]), 3u);
  backward(sum(out[0]));
  EXPECT_EQ(numbers(grad(a)), (Numbers{3, 3}));
  EXPECT_EQ(numbers(grad(c)), (Numbers{1, 1}));
  EXPECT_FALSE(grad(d).defined());
  EXPECT_EQ(numbers(Mixed::came[3]), (Numbers{0, 0}));  // materialized
  EXPECT_EQ(numbers(Mixed::came[2]), (Numbers{0, 0}));
  const std::vector<Tensor> again = Mixed::apply(a, 3.0, std::optional<Tensor>(d), std::vector{c});
  grad(std::vector{sum(again[0])}, std::vector{c});
  EXPECT_THAT(Mixed::needed_backward, ElementsAre(false, false, false, true));
}

struct Lazy : Function<Lazy> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& x) {
    context.set_materialize_grads(false);
    return {scale(x, 2), scale(x, 3)};
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    EXPECT_FALSE(grads[0].defined());
    return {scale(grads[1], 3)};
  }
};

TEST(Function, GradientsMayStayUndefined) {
  const Tensor x = leaf({1});
  backward(Lazy::apply(x)[1]);
  EXPECT_EQ(numbers(grad(x)), (Numbers{3}));
}

struct AddOne : Function<AddOne> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.mark_dirty({x});
    return add_in_place(x, constant({1}));
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) { return {scale(grads[0], 10)}; }
};

TEST(Function, DirtyInputs) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 2);
  const Tensor same = AddOne::apply(y);
  EXPECT_TRUE(same.is_same(y));
  EXPECT_EQ(name_of(grad_fn(y)), "AddOneBackward");
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{20, 20}));
  EXPECT_THAT(error_of([&] { AddOne::apply(x); }), HasSubstr("a leaf Variable that requires grad"));

  const Tensor w = leaf({1, 2});
  const Tensor base = scale(w, 2), part = slice(base, 0, 1);
  AddOne::apply(part);
  backward(sum(base));
  EXPECT_EQ(numbers(base), (Numbers{3, 4}));
  EXPECT_EQ(numbers(grad(w)), (Numbers{20, 2}));
}

// The mutated argument is the second of two results.
struct AddsToTheSecond : Function<AddsToTheSecond> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& x, const Tensor& y) {
    context.mark_dirty({y});
    return {scale(x, 3), add_in_place(y, constant({1}))};
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return {scale(grads[0], 3), scale(grads[1], 10)};
  }
};

TEST(Function, ADirtyInputKeepsItsPlaceAmongTheResults) {
  const Tensor x = leaf({1}), w = leaf({2}), y = scale(w, 1);
  const std::vector<Tensor> out = AddsToTheSecond::apply(x, y);
  EXPECT_TRUE(out[1].is_same(y));
  EXPECT_EQ(output_nr(y), 1u);
  backward(scale(y, 2));
  EXPECT_EQ(numbers(grad(x)), (Numbers{0}));
  EXPECT_EQ(numbers(grad(w)), (Numbers{20}));
}

// Adds to the second argument, which then depends on both.
struct AddsTo : Function<AddsTo> {
  static Tensor forward(FunctionContext& context, const Tensor& x, const Tensor& y) {
    context.mark_dirty({y});
    return add_in_place(y, x);
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return {scale(grads[0], 3), scale(grads[0], 10)};
  }
};

TEST(Function, ADirtyViewNeedNotBeTheFirstArgument) {
  const Tensor x = leaf({1}), w = leaf({2, 5}), whole = scale(w, 1);
  AddsTo::apply(x, slice(whole, 1, 2));
  EXPECT_EQ(numbers(whole), (Numbers{2, 6}));
  backward(sum(scale(whole, 2)));
  EXPECT_EQ(numbers(grad(x)), (Numbers{6}));
  EXPECT_EQ(numbers(grad(w)), (Numbers{2, 20}));
}

// Writes without operators, as third-party code would.
struct Zeroes : Function<Zeroes> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.mark_dirty({x});
    x.data<double>()[0] = 0;
    return x;
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) { return {scale(grads[0], 0)}; }
};

TEST(Function, WhatItWroteIsSeenByOthers) {
  const Tensor x = leaf({2}), a = scale(x, 1), y = Cube::apply(a);
  Zeroes::apply(a);
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("is at version 1; expected version 0 instead"));
}

struct ForgetsDirty : Function<ForgetsDirty> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.mark_dirty({x});
    return scale(x, 1);
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) { return grads; }
};

TEST(Function, DirtyInputsMustBeReturned) {
  EXPECT_THAT(error_of([] { ForgetsDirty::apply(scale(leaf({1}), 1)); }),
              HasSubstr("Some elements marked as dirty during the forward method were not returned as output."));
}

struct Same : Function<Same> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x; }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) { return {scale(grads[0], -1)}; }
};

TEST(Function, AnInputReturnedAsItIs) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Same::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_THAT(
      error_of([&] { scale_in_place(y, 2); }),
      HasSubstr("Output 0 of SameBackward is a view and is being modified inplace. This view was created inside "
                "a custom Function"));
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{-1, -1}));
}

struct FirstOf : Function<FirstOf> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return slice(x, 0, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return {mul(grads[0], constant({-1, 0}))};
  }
};
struct HalvesOf : Function<HalvesOf> {
  static std::vector<Tensor> forward(FunctionContext&, const Tensor& x) { return {slice(x, 0, 1), slice(x, 1, 2)}; }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return {add(mul(grads[0], constant({-1, 0})), mul(grads[1], constant({0, -2})))};
  }
};

TEST(Function, ViewsOfItsInputs) {
  const Tensor x = leaf({1, 2}), first = FirstOf::apply(x);
  EXPECT_THAT(error_of([&] { scale_in_place(first, 2); }),
              HasSubstr("Output 0 of FirstOfBackward is a view and is being modified inplace. This view was created "
                        "inside a custom Function"));
  backward(first);
  EXPECT_EQ(numbers(grad(x)), (Numbers{-1, 0}));
  const std::vector<Tensor> halves = HalvesOf::apply(x);
  EXPECT_THAT(error_of([&] { scale_in_place(halves[1], 2); }),
              HasSubstr("Output 1 of HalvesOfBackward is a view and is being modified inplace. This view is the output "
                        "of a function that returns multiple views."));
  backward(halves[1]);
  EXPECT_EQ(numbers(grad(x)), (Numbers{-1, -2}));
}

struct Once : Function<Once> {
  static constexpr bool kOnceDifferentiable = true;
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return mul(x, x);
  }
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    EXPECT_FALSE(is_grad_enabled());
    return {mul(grads[0], scale(context.saved()[0], 2))};
  }
};

TEST(Function, OnceDifferentiable) {
  const Tensor x = leaf({3});
  const Tensor first = grad(std::vector{Once::apply(x)}, std::vector{x}, {}, creating()).at(0);
  EXPECT_EQ(numbers(first), (Numbers{6}));
  EXPECT_THAT(error_of([&] { backward(first); }), HasSubstr("trying to differentiate twice a function that was marked "
                                                            "with @once_differentiable"));
}

template <int kCount>
struct Wrong : Function<Wrong<kCount>> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return kCount == 1 ? std::vector<Tensor>{slice(grads[0], 0, 2)} : std::vector<Tensor>{grads[0], grads[0]};
  }
};

TEST(Function, WrongGradientsAreNamed) {
  const Tensor x = leaf({1, 2, 3});
  EXPECT_THAT(error_of([&] { backward(sum(Wrong<2>::apply(x))); }),
              HasSubstr("returned an incorrect number of gradients (expected 1, got 2)"));
  EXPECT_THAT(error_of([&] { backward(sum(Wrong<1>::apply(x))); }),
              HasSubstr("returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]"));
}

Dims given_sizes;
struct GivesOnes : Function<GivesOnes> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return sum(x); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor>) {
    int64_t count = 1;
    for (const int64_t size : given_sizes) count *= size;
    return {constant(Numbers(static_cast<size_t>(count), 1), given_sizes)};
  }
};

// A gradient with the broadcast shape is summed to the input's shape; other shapes are refused.
TEST(Function, GradientsThatWereBroadcast) {
  const struct {
    Dims input, gradient;
    double each;  // of the sum; 0: refused
  } rows[] = {{{2, 3}, {2, 3}, 1}, {{1, 3}, {2, 3}, 2}, {{2, 1}, {2, 3}, 3}, {{1, 1}, {2, 3}, 6}, {{3}, {2, 3}, 2},
              {{}, {2}, 2},        {{1}, {4, 3}, 12},   {{3}, {2}, 0},       {{2, 3}, {3}, 0},    {{2, 3}, {2, 1}, 0},
              {{1}, {}, 0},        {{2, 3}, {3, 2}, 0}, {{3, 1}, {2, 3}, 0}};
  for (const auto& [input, gradient, each] : rows) {
    int64_t count = 1;
    for (const int64_t size : input) count *= size;
    const Tensor x = leaf(Numbers(static_cast<size_t>(count), 1), input);
    given_sizes = gradient;
    const std::string error = error_of([&] { backward(GivesOnes::apply(x)); });
    SCOPED_TRACE(to_string(input) + " from " + to_string(gradient));
    if (each > 0) {
      EXPECT_EQ(error, "no error");
      EXPECT_EQ(grad(x).sizes(), input);
      EXPECT_EQ(numbers(grad(x)), Numbers(static_cast<size_t>(count), each));
    } else {
      EXPECT_THAT(error, HasSubstr("but expected shape compatible with " + to_string(input)));
    }
  }
}

struct CallsBackward : Function<CallsBackward> {
  static Tensor forward(FunctionContext& context, const Tensor& x, int64_t depth) {
    context.data["depth"] = depth;
    context.save_for_backward({x});
    return scale(x, 1);
  }
  // The gradient of x³, computed by a nested pass, recursively.
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    const EnableGradGuard guard;
    const int64_t depth = context.data["depth"].to_int();
    const Tensor x = detach(context.saved()[0]);
    set_requires_grad(x);
    const Tensor y = depth > 0 ? CallsBackward::apply(x, depth - 1) : mul(mul(x, x), x);
    backward_of(y);
    return {mul(grads[0], grad(x)), {}};
  }
  static void backward_of(const Tensor& y) { autograd::backward(sum(y)); }
};

TEST(Function, PassesInsideOfPasses) {
  for (const int64_t depth : {0, 1, 400}) {
    const Tensor x = leaf({2});
    backward(CallsBackward::apply(x, depth));
    EXPECT_EQ(numbers(grad(x)), (Numbers{12})) << depth;
  }
}

}  // namespace
}  // namespace tensord::autograd::function_test
