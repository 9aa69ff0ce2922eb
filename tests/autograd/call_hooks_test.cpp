// Hooks on the gradients of a whole call: which gradients they see, what they may return, and when they run.
#include "core/autograd/hooks/call_hooks.h"

#include "tests/autograd/support.h"

namespace tensord::autograd::call_hooks_test {
namespace {

using Tensors = CallHooks::Tensors;
using Changed = std::optional<Tensors>;

// One call with hooks: `body` computes results from inputs.
template <class Body>
Tensors call(std::vector<CallHooks::Hook> hooks, std::vector<CallHooks::PreHook> pre_hooks, Tensors inputs,
             Body&& body) {
  const auto watch = std::make_shared<CallHooks>(std::move(hooks), std::move(pre_hooks));
  watch->watch_inputs(inputs);
  Tensors outputs = body(inputs);
  watch->watch_outputs(outputs);
  return outputs;
}

Tensors doubled(const Tensors& inputs) { return {scale(inputs[0], 2), scale(inputs[0], 3)}; }

TEST(CallHooks, SeeAllGradientsAtOnce) {
  const Tensor x = leaf({1, 2});
  Tensors of_inputs, of_outputs, before;
  const auto hook = [&](const Tensors& inputs, const Tensors& outputs) {
    of_inputs = inputs;
    of_outputs = outputs;
    return Changed();
  };
  const auto pre_hook = [&](const Tensors& outputs) {
    before = outputs;
    return Changed();
  };
  const Tensors out = call({hook}, {pre_hook}, {constant({5}), Tensor(), x}, [](const Tensors& inputs) {
    EXPECT_FALSE(inputs[1].defined());
    return Tensors{scale(inputs[2], 2), Tensor(), scale(inputs[2], 3)};
  });
  EXPECT_FALSE(out[1].defined());
  backward(sum(out[2]));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 3}));
  ASSERT_EQ(of_inputs.size(), 3u);
  EXPECT_FALSE(of_inputs[0].defined());
  EXPECT_FALSE(of_inputs[1].defined());
  EXPECT_EQ(numbers(of_inputs[2]), (Numbers{3, 3}));
  for (const Tensors& seen : {before, of_outputs}) {
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_FALSE(seen[0].defined());
    EXPECT_FALSE(seen[1].defined());
    EXPECT_EQ(numbers(seen[2]), (Numbers{1, 1}));
  }
}

TEST(CallHooks, ReplaceGradients) {
  const Tensor x = leaf({1, 2});
  const Tensors out = call({[](const Tensors& inputs, const Tensors& outputs) {
                             EXPECT_EQ(numbers(outputs[0]), (Numbers{10, 10}));  // as modified by the pre-hook
                             return Changed(Tensors{scale(inputs[0], 100)});
                           }},
                           {[](const Tensors& outputs) {
                             return Changed(Tensors{scale(outputs[0], 10), outputs[1]});
                           }},
                           {x}, doubled);
  backward(sum(out[0]));
  EXPECT_EQ(numbers(grad(x)), (Numbers{2000, 2000}));
}

TEST(CallHooks, WatchNothingWithoutGradients) {
  int calls = 0;
  const auto hook = [&](const Tensors&, const Tensors&) { return ++calls, Changed(); };
  const Tensor x = leaf({1, 2}), y = constant({1, 2});
  call({hook}, {}, {y}, [&](const Tensors& inputs) {
    EXPECT_TRUE(inputs[0].is_same(y));
    return Tensors{y};
  });
  const NoGradGuard no_grad;
  call({hook}, {}, {x}, [&](const Tensors& inputs) {
    EXPECT_TRUE(inputs[0].is_same(x));
    return Tensors{x};
  });
  EXPECT_EQ(calls, 0);
}

// A call whose inputs require no gradient, but whose weights do.
TEST(CallHooks, ChangeNothingWhereNoInputNeedsAGradient) {
  const Tensor w = leaf({1, 2});
  const auto error = [&](const Changed& changed, size_t inputs) {
    const Tensors out = call({[&](const Tensors& of_inputs, const Tensors& of_outputs) {
                               EXPECT_EQ(of_inputs.size(), inputs);
                               EXPECT_EQ(numbers(of_outputs[0]), (Numbers{1, 1}));
                               return changed;
                             }},
                             {}, Tensors(inputs, constant({3})), [&](const Tensors&) { return Tensors{scale(w, 2)}; });
    return error_of([&] { backward(sum(out[0])); });
  };
  EXPECT_EQ(error({}, 2), "no error");
  EXPECT_EQ(error(Tensors(1), 1), "no error");
  EXPECT_THAT(error(Tensors{constant({1})}, 1), HasSubstr("should always return None or None for all gradients"));
  EXPECT_THAT(error(Tensors{Tensor(), constant({1})}, 2), HasSubstr("should always return None"));
}

TEST(CallHooks, NumbersOfGradients) {
  const auto error = [](size_t of_inputs, size_t of_outputs) {
    const Tensor x = leaf({1, 2});
    const Tensors out =
        call({[=](const Tensors& inputs, const Tensors&) { return Changed(Tensors(of_inputs, inputs[0])); }},
             {[=](const Tensors& outputs) { return Changed(Tensors(of_outputs, outputs[0])); }}, {x}, doubled);
    return error_of([&] { backward(sum(out[0])); });
  };
  EXPECT_EQ(error(1, 2), "no error");
  EXPECT_EQ(error(2, 2), "Backward hook returned an invalid number of grad_input, got 2, but expected 1");
  EXPECT_EQ(error(0, 2), "Backward hook returned an invalid number of grad_input, got 0, but expected 1");
  EXPECT_EQ(error(1, 1), "Backward hook returned an invalid number of grad_output, got 1, but expected 2");
}

// A tensor that bypasses the results gives the inputs a gradient before the results have theirs.
TEST(CallHooks, GradientsThatGoAroundTheResults) {
  const Tensor x = leaf({1, 2});
  Tensor aside;
  call({}, {}, {x}, [&](const Tensors& inputs) {
    aside = scale(inputs[0], 5);
    return doubled(inputs);
  });
  EXPECT_THAT(error_of([&] { backward(sum(aside)); }),
              HasSubstr("hook for grad_input is called before the grad_output one"));
  // A second pass must go through the results again.
  Tensor again;
  const Tensors out = call({}, {}, {x}, [&](const Tensors& inputs) {
    again = scale(inputs[0], 5);
    return doubled(inputs);
  });
  BackwardOptions retaining;
  retaining.retain_graph = true;
  backward(sum(out[0]), {}, retaining);
  EXPECT_THAT(error_of([&] { backward(sum(again)); }), HasSubstr("before the grad_output one"));
}

}  // namespace
}  // namespace tensord::autograd::call_hooks_test
