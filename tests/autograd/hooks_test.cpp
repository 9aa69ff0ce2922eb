// Hooks, retained gradients, and accumulation of gradients in leaves.
#include <mutex>
#include <thread>

#include "core/autograd/function.h"
#include "core/autograd/hooks/callbacks.h"
#include "core/autograd/hooks/hooks.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::hooks_test {
namespace {

BackwardOptions retaining() {
  BackwardOptions options;
  options.retain_graph = true;
  return options;
}

TEST(Hooks, OfATensorSeeAndReplaceItsGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 3);
  std::vector<std::string> order;
  register_hook(y, [&](const Tensor& g) {
    order.push_back("first");
    EXPECT_EQ(numbers(g), (Numbers{2, 2}));
    return scale(g, 10);
  });
  HookHandle second = register_hook(y, [&](const Tensor& g) {
    order.push_back("second");
    EXPECT_EQ(numbers(g), (Numbers{20, 20}));
    return Tensor();
  });
  register_hook(x, [&](const Tensor& g) {
    order.push_back("leaf");
    EXPECT_EQ(numbers(g), (Numbers{60, 60}));
    return scale(g, 2);
  });
  const Tensor total = sum(scale(y, 2));
  backward(total, {}, retaining());
  EXPECT_THAT(order, ElementsAre("first", "second", "leaf"));
  EXPECT_EQ(numbers(grad(x)), (Numbers{120, 120}));
  second.remove();
  second.remove();  // once is enough
  backward(total);
  EXPECT_EQ(order.size(), 5u);
  EXPECT_THAT(error_of([] { register_hook(constant({1}), [](const Tensor&) { return Tensor(); }); }),
              HasSubstr("cannot register a hook on a tensor that doesn't require gradient"));
}

TEST(Hooks, OfATensorBelongToTheValueTheyWereGivenFor) {
  const Tensor x = leaf({1});
  const Tensor y = scale(x, 2);
  Numbers before, after;
  register_hook(y, [&](const Tensor& g) {
    before = numbers(g);
    return Tensor();
  });
  retain_grad(y);
  scale_in_place(y, 3);
  register_hook(y, [&](const Tensor& g) {
    after = numbers(g);
    return Tensor();
  });
  backward(y);
  EXPECT_EQ(before, (Numbers{3}));
  EXPECT_EQ(after, (Numbers{1}));
  EXPECT_EQ(numbers(grad(y)), (Numbers{1}));  // a retained gradient is that of the newest value
  EXPECT_EQ(numbers(grad(x)), (Numbers{6}));
}

TEST(Hooks, AreSeenByGrad) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 3);
  register_hook(y, [](const Tensor& g) { return scale(g, 10); });
  EXPECT_EQ(numbers(grad(std::vector{sum(y)}, std::vector{y}).at(0)), (Numbers{10, 10}));
}

TEST(Hooks, OfANodeRunBeforeAndAfterIt) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = mul(x, w);
  std::vector<std::string> order;
  grad_fn(y)->register_prehook([&](const std::vector<Tensor>& grads) {
    order.push_back("before");
    EXPECT_EQ(grads.size(), 1u);
    return std::optional(std::vector{scale(grads[0], 2)});
  });
  HookHandle handle = grad_fn(y)->register_hook(
      [&](const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) -> std::optional<std::vector<Tensor>> {
        order.push_back("after");
        EXPECT_EQ(numbers(outputs[0]), (Numbers{2, 2}));
        EXPECT_EQ(numbers(inputs[0]), (Numbers{6, 8}));
        return std::vector{scale(inputs[0], -1), inputs[1]};
      });
  register_hook(y, [&](const Tensor&) {
    order.push_back("tensor");
    return Tensor();
  });
  backward(sum(y), {}, retaining());
  EXPECT_THAT(order, ElementsAre("tensor", "before", "after"));
  EXPECT_EQ(numbers(grad(x)), (Numbers{-6, -8}));
  EXPECT_EQ(numbers(grad(w)), (Numbers{2, 4}));
  handle.remove();
  grad_fn(y)->register_hook([](const auto&, const auto&) { return std::optional(std::vector<Tensor>(1)); });
  EXPECT_THAT(error_of([&] { backward(sum(y)); }), HasSubstr("a node's hook returned 1 gradients, expected 2"));
}

TEST(NodeHooks, WhatAHookReturnsIsHeldAgainstTheForwardCall) {
  const auto with_gradient = [](const Tensor& gradient) {
    const Tensor x = leaf({1, 2}), w = leaf({3, 4}), y = mul(x, w);
    grad_fn(y)->register_hook([&](const auto& inputs, const auto&) {
      return std::optional(std::vector{gradient, inputs[1]});
    });
    backward(sum(y));
    return grad(x);
  };
  EXPECT_THAT(error_of([&] {
                with_gradient(constant({1, 2, 3}));
              }),
              HasSubstr("returned an invalid gradient at index 0"));
  // As for any node: a gradient of another dtype is cast, and one of a broadcast shape is summed.
  EXPECT_EQ(with_gradient(constant({5, 6}, Dims{2}, DType::kFloat32)).dtype(), DType::kFloat64);
  EXPECT_EQ(numbers(with_gradient(constant({1, 2, 3, 4}, Dims{2, 2}))), (Numbers{4, 6}));
}

TEST(RetainGrad, KeepsWhatHooksMadeOfIt) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 2);
  EXPECT_FALSE(retains_grad(y));
  retain_grad(y);
  EXPECT_TRUE(retains_grad(y));
  register_hook(y, [](const Tensor& g) { return scale(g, 7); });
  const Tensor total = sum(scale(y, 3));
  backward(total, {}, retaining());
  EXPECT_EQ(numbers(grad(y)), (Numbers{21, 21}));
  backward(total);
  EXPECT_EQ(numbers(grad(y)), (Numbers{42, 42}));
  EXPECT_THAT(error_of([] { retain_grad(constant({1})); }),
              HasSubstr("can't retain_grad on Tensor that has requires_grad=False"));
  retain_grad(x);  // a leaf keeps it anyway
}

TEST(RetainGrad, TwiceIsAsOnce) {
  const Tensor x = leaf({1, 2}), y = scale(x, 2);
  retain_grad(y);
  retain_grad(y);
  backward(sum(scale(y, 3)));
  EXPECT_EQ(numbers(grad(y)), (Numbers{3, 3}));
}

TEST(NodeHooks, AreSeenWhileTheyAreThere) {
  const Tensor x = leaf({1, 2}), y = scale(x, 2), z = scale(x, 3);
  const NodePtr node = grad_fn(y);
  EXPECT_FALSE(has_hooks(*node));
  const auto seen_with = [&](HookHandle handle) {
    const bool is_seen = has_hooks(*node);
    handle.remove();
    EXPECT_FALSE(has_hooks(*node));
    return is_seen;
  };
  EXPECT_TRUE(seen_with(register_hook(y, [](const Tensor&) { return Tensor(); })));
  EXPECT_TRUE(seen_with(node->register_prehook([](const auto&) { return std::optional<std::vector<Tensor>>(); })));
  EXPECT_TRUE(
      seen_with(node->register_hook([](const auto&, const auto&) { return std::optional<std::vector<Tensor>>(); })));
  retain_grad(z);
  EXPECT_TRUE(has_hooks(*grad_fn(z)));
}

// A hook's gradient may have a graph; in a pass that is not recorded it is detached.
TEST(Accumulate, AHistoryOfAHookIsLeftBehind) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  register_hook(x, [&](const Tensor& gradient) {
    const EnableGradGuard recorded;
    return mul(gradient, w);
  });
  backward(sum(mul(x, x)));
  EXPECT_EQ(numbers(grad(x)), (Numbers{6, 16}));
  EXPECT_FALSE(requires_grad(grad(x)));
}

TEST(Accumulate, MemoryThatIsKeptElsewhereIsCopied) {
  const Tensor x = leaf({1, 2}), kept = constant({3, 4});
  register_hook(x, [&](const Tensor&) { return detach(kept); });
  backward(sum(scale(x, 1)));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 4}));
  EXPECT_NE(grad(x).raw_data(), kept.raw_data());
}

TEST(Accumulate, GradientsWithoutMemoryAreNoNumbers) {
  for (const Tensor& x : {Tensor::meta(Dims{2}, DType::kFloat64), constant({1, 2})}) {
    set_requires_grad(x);
    backward(x, Tensor::meta(Dims{2}, DType::kFloat64));
    EXPECT_TRUE(grad(x).is_meta());
    EXPECT_THAT(error_of([&] { grad(x).data<double>(); }), HasSubstr("no elements to read"));
  }
}

TEST(Accumulate, GradientsWithoutMemoryHaveNoSum) {
  const Tensor x = Tensor::meta(Dims{2}, DType::kFloat64), gradient = Tensor::meta(Dims{2}, DType::kFloat64);
  set_requires_grad(x);
  const Tensor roots[] = {x, x}, gradients[] = {gradient, gradient};
  EXPECT_THAT(error_of([&] { backward(roots, gradients); }), HasSubstr("no elements to read"));
}

// Gradients are accumulated in place only in memory that nothing else uses.
TEST(Accumulate, SumsLeaveReadOnlyMemoryAlone) {
  struct Fixed : Function<Fixed> {
    static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
    static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor>) {
      static double memory[] = {5, 6};
      return {Tensor::from_storage(wrap_storage(
                                       memory, sizeof(memory), [] {}, {}, /*is_writable=*/false),
                                   Dims{2}, Dims{1}, 0, DType::kFloat64)};
    }
  };
  const Tensor x = leaf({1, 2}), y = scale(x, 1), early = scale(y, 2);
  for (int i = 0; i < 2; ++i) {
    // The later node gives its gradient first.
    backward(sum(add(early, Fixed::apply(y))), {}, retaining());
    EXPECT_EQ(numbers(grad(x)), (Numbers{7, 8}));
    set_grad(x, {});
  }
}

TEST(Accumulate, FirstGradientIsTakenOverWhenNobodyElseHasIt) {
  const Tensor x = leaf({1, 2});
  const void* seen = nullptr;
  register_hook(x, [&](const Tensor& g) {
    seen = g.raw_data();
    return Tensor();
  });
  backward(sum(mul(x, x)));
  EXPECT_EQ(grad(x).raw_data(), seen);
  const Tensor before = grad(x);
  backward(sum(scale(x, 2)));
  EXPECT_TRUE(grad(x).is_same(before));  // added in place
  EXPECT_EQ(numbers(before), (Numbers{4, 6}));
}

TEST(Accumulate, SharedGradientsAreCopied) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}), given = constant({5, 6});
  backward(add(x, w), given);
  EXPECT_NE(grad(x).raw_data(), given.raw_data());
  EXPECT_NE(grad(x).raw_data(), grad(w).raw_data());
  scale_in_place(grad(x), 2);
  EXPECT_EQ(numbers(grad(w)), (Numbers{5, 6}));
  EXPECT_EQ(numbers(given), (Numbers{5, 6}));
}

TEST(Accumulate, LayoutFollowsTheLeaf) {
  const Tensor x = constant({1, 2, 3, 4, 5, 6}, {2, 3}).as_view({2, 3}, {1, 2}, 0).clone(true);
  ASSERT_EQ(x.strides(), (Dims{1, 2}));
  set_requires_grad(x);
  backward(mul(x, x), constant({1, 1, 1, 1, 1, 1}, {2, 3}));
  EXPECT_EQ(grad(x).strides(), (Dims{1, 2}));
  const Tensor y = leaf({1, 2, 3});
  backward(sum(y));  // an expanded gradient
  EXPECT_EQ(grad(y).strides(), (Dims{1}));
  EXPECT_EQ(numbers(grad(y)), (Numbers{1, 1, 1}));
}

TEST(Accumulate, RecordedPassesAddOutOfPlace) {
  const Tensor x = leaf({2});
  BackwardOptions options;
  options.create_graph = true;
  backward(mul(x, x), {}, options);
  const Tensor first = grad(x);
  EXPECT_TRUE(requires_grad(first));
  backward(mul(x, x), {}, options);
  EXPECT_FALSE(grad(x).is_same(first));
  EXPECT_EQ(numbers(first), (Numbers{4}));
  EXPECT_EQ(numbers(grad(x)), (Numbers{8}));
  const Tensor total = grad(x);
  set_grad(x, {});  // otherwise the gradient would depend on itself
  EXPECT_EQ(numbers(grad(std::vector{total}, std::vector{x}).at(0)), (Numbers{4}));
}

TEST(Accumulate, GradientsAreConvertedToTheLeafsDtype) {
  const Tensor x = leaf({1, 2}, {2}, DType::kFloat32);
  const Tensor y = ops::call_by_name("aten::to.dtype", x, static_cast<int64_t>(DType::kFloat64));
  backward(sum(mul(y, y)));
  EXPECT_EQ(grad(x).dtype(), DType::kFloat32);
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 4}));
}

TEST(Grad, OfATensorCanBeSet) {
  const Tensor x = leaf({1, 2});
  set_grad(x, constant({3, 4}));
  backward(sum(x));
  EXPECT_EQ(numbers(grad(x)), (Numbers{4, 5}));
  set_grad(x, {});
  EXPECT_FALSE(grad(x).defined());
  EXPECT_THAT(error_of([&] { set_grad(x, constant({1})); }), HasSubstr("assigned grad has data of a different size"));
  EXPECT_THAT(error_of([&] { set_grad(x, x); }), HasSubstr("can't assign Variable as its own grad"));
  EXPECT_THAT(error_of([&] {
                set_grad(x, constant({1, 2}, {2}, DType::kFloat32));
              }),
              HasSubstr("assigned grad has data of a different type"));
  EXPECT_THAT(error_of([&] { set_requires_grad(scale(x, 1), false); }),
              HasSubstr("you can only change requires_grad flags of leaf variables."));
  EXPECT_THAT(error_of([] { set_requires_grad(constant({1}, {1}, DType::kInt64)); }),
              HasSubstr("only Tensors of floating point and complex dtype can require gradients"));
}

TEST(Callbacks, RunOnceAtTheEndOfTheirPass) {
  for (const int threads : {1, 3}) {
    const Tensor x = leaf({1, 2}), y = leaf({3, 4});
    std::vector<std::string> events;
    std::mutex mutex;
    const auto note = [&](const std::string& event) {
      const std::scoped_lock lock(mutex);
      events.push_back(event);
    };
    const std::thread::id own = std::this_thread::get_id();
    register_hook(x, [&](const Tensor&) {
      queue_callback([&] {
        EXPECT_EQ(std::this_thread::get_id(), own);
        EXPECT_EQ(numbers(grad(x)), events.size() == 1 ? (Numbers{3, 4}) : (Numbers{4, 5}));
        EXPECT_EQ(numbers(grad(y)), (Numbers{1, 2}));
        note("end");
        // A separate pass, whose hook starts the next one.
        if (events.size() == 2) backward(sum(scale(x, 1)));
      });
      note("hook");
      return Tensor();
    });
    BackwardOptions options;
    options.threads = threads;
    EXPECT_ANY_THROW(queue_callback([] {}));
    backward(sum(mul(x, y)), {}, options);
    EXPECT_EQ(events[0], "hook");
    EXPECT_EQ(events[1], "end");
    EXPECT_EQ(events[2], "hook");
    EXPECT_EQ(events.size(), 4u);
  }
}

TEST(Callbacks, OfAPassThatFailsDoNotRun) {
  const Tensor x = leaf({1, 2});
  bool is_called = false;
  gradient_edge(x).node->register_hook(
      [&](const std::vector<Tensor>&, const std::vector<Tensor>&) -> std::optional<std::vector<Tensor>> {
        queue_callback([&] { is_called = true; });
        fail(ErrorCode::kInternal, "no");
      });
  EXPECT_THAT(error_of([&] { backward(sum(x)); }), HasSubstr("no"));
  EXPECT_FALSE(is_called);
}

TEST(Hooks, BehindALeafCostNoCopyOfItsGradient) {
  const Tensor x = leaf({1, 2});
  const void* came = nullptr;
  register_hook(x, [&](const Tensor& g) {
    came = g.raw_data();
    return Tensor();
  });
  gradient_edge(x).node->register_hook(
      [](const std::vector<Tensor>&, const std::vector<Tensor>&) -> std::optional<std::vector<Tensor>> {
        return std::nullopt;
      });
  backward(sum(mul(x, constant({3, 4}))));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 4}));
  EXPECT_EQ(grad(x).raw_data(), came);
}

}  // namespace
}  // namespace tensord::autograd::hooks_test
