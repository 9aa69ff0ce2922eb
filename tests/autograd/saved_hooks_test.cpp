// Hooks on saved tensors, and hooks after a leaf has its gradient.
#include <any>

#include "core/autograd/function.h"
#include "core/autograd/hooks/post_accumulate.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::saved_hooks_test {
namespace {

Tensor sigmoid(const Tensor& x) { return ops::call_by_name("aten::sigmoid", x); }
Tensor product(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::mul.Tensor", a, b); }

struct Counter {
  int packed = 0, unpacked = 0;
  // Halves saved tensors, so that a tensor that bypasses the hooks gives different gradients.
  SavedTensorHooks hooks() {
    return {[this](const Tensor& tensor) -> std::any {
              ++packed;
              EXPECT_FALSE(requires_grad(tensor));
              return ops::call_by_name("aten::mul.Scalar", tensor, 0.5);
            },
            [this](const std::any& kept) {
              ++unpacked;
              return ops::call_by_name("aten::mul.Scalar", std::any_cast<const Tensor&>(kept), 2.0);
            }};
  }
};

TEST(SavedTensorHooks, SeeArgumentsAndResultsThatAreSaved) {
  const Tensor x = leaf({1, -2}), w = leaf({3, 4});
  Counter counter;
  Tensor y;
  {
    const SavedTensorHooksScope scope(counter.hooks());
    y = sigmoid(product(x, w));  // both factors, and the sigmoid's result
  }
  EXPECT_EQ(counter.packed, 3);
  EXPECT_EQ(counter.unpacked, 0);
  backward(sum(y));
  EXPECT_EQ(counter.unpacked, 3);
  const Numbers with_hooks = numbers(grad(x));
  const Tensor x2 = leaf({1, -2}), w2 = leaf({3, 4});
  backward(sum(sigmoid(product(x2, w2))));
  EXPECT_EQ(with_hooks, numbers(grad(x2)));
  EXPECT_EQ(numbers(grad(w)), numbers(grad(w2)));
}

TEST(SavedTensorHooks, EndWithTheirScopeAndTheInnermostCounts) {
  const Tensor x = leaf({2});
  Counter outer, inner;
  {
    const SavedTensorHooksScope scope(outer.hooks());
    {
      const SavedTensorHooksScope within(inner.hooks());
      product(x, x);
    }
    product(x, x);
  }
  product(x, x);
  EXPECT_EQ(inner.packed, 2);
  EXPECT_EQ(outer.packed, 2);
}

TEST(SavedTensorHooks, HoldForListsFunctionsAndSecondGradients) {
  const Tensor x = leaf({1, 2}), z = leaf({5, 6});
  Counter counter;
  Tensor y;
  {
    const SavedTensorHooksScope scope(counter.hooks());
    const Tensor both = ops::call_by_name("aten::stack", std::vector<Tensor>{x, z}, 0);
    y = sum(product(product(both, both), both));
  }
  BackwardOptions options;
  options.create_graph = true;
  const Tensor inputs[] = {x, z};
  const std::vector<Tensor> first = grad(std::span(&y, 1), inputs, {}, options);
  EXPECT_EQ(numbers(first[0]), (Numbers{3, 12}));
  const Tensor total = sum(first[0]);
  EXPECT_EQ(numbers(grad(std::span(&total, 1), inputs, {}, {}, true)[0]), (Numbers{6, 12}));
}

TEST(SavedTensorHooks, DoNotFindWritesButGiveWhatWasPacked) {
  const Tensor x = leaf({3});
  Counter counter;
  Tensor y, twice;
  {
    const SavedTensorHooksScope scope(counter.hooks());
    twice = scale(x, 2);
    y = sum(product(twice, twice));
  }
  scale_in_place(detach(twice), 100);  // the hook's copy has separate memory
  backward(y);
  EXPECT_EQ(numbers(grad(x)), (Numbers{24}));
}

TEST(SavedTensorHooks, AnotherTensorIsRefused) {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    const SavedTensorHooksScope scope({[](const Tensor& tensor) -> std::any { return tensor; },
                                       [](const std::any&) {
                                         return constant({1, 2, 3});
                                       }});
    y = sum(product(x, x));
  }
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("SavedTensorHooks: unpack gave float64[3] for float64[2]"));
  EXPECT_THAT(error_of([] { SavedTensorHooksScope scope({}); }), HasSubstr("both pack and unpack must be given"));
}

TEST(SavedTensorHooks, OnlyATensorOfTheSameKindIsTaken) {
  const auto error_with = [](const Tensor& other) {
    const Tensor x = leaf({1, 2});
    Tensor y;
    {
      const SavedTensorHooksScope scope(
          {[](const Tensor& tensor) -> std::any { return tensor; }, [&other](const std::any&) { return other; }});
      y = sum(product(x, x));
    }
    return error_of([&] { backward(y); });
  };
  EXPECT_EQ(error_with(constant({5, 6})), "no error");
  EXPECT_EQ(error_with(Tensor()), "SavedTensorHooks: unpack gave an undefined tensor for float64[2]");
  EXPECT_EQ(error_with(constant({5, 6}, Dims{2}, DType::kFloat32)),
            "SavedTensorHooks: unpack gave float32[2] for float64[2]");
}

TEST(SavedTensorHooks, AConstantComesBackAsOne) {
  const Tensor x = leaf({1, 2}), factor = constant({3, 4});
  Counter counter;
  Tensor y;
  {
    const SavedTensorHooksScope scope(counter.hooks());
    y = sum(product(x, factor));
  }
  BackwardOptions options;
  options.create_graph = true;
  const Tensor first = grad(std::span(&y, 1), std::span(&x, 1), {}, options)[0];
  EXPECT_EQ(numbers(first), (Numbers{3, 4}));
  EXPECT_FALSE(requires_grad(first));
}

TEST(SavedTensorHooks, AnErrorInPackLeavesTheScopeAsItWas) {
  const Tensor x = leaf({1});
  Counter counter;
  const SavedTensorHooksScope outer(counter.hooks());
  {
    const SavedTensorHooksScope scope(
        {[](const Tensor&) -> std::any { fail(ErrorCode::kInvalidArgument, "the disk is full"); },
         [](const std::any&) { return Tensor(); }});
    EXPECT_THAT(error_of([&] { product(x, x); }), HasSubstr("the disk is full"));
    EXPECT_THAT(error_of([&] { product(x, x); }), HasSubstr("the disk is full"));
  }
  product(x, x);
  EXPECT_EQ(counter.packed, 2);
}

TEST(SavedTensorHooks, OfTheProcessorKeepTheSameNumbers) {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    const SavedTensorHooksScope scope(save_on_cpu());
    y = sum(product(x, x));
  }
  backward(y);
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 4}));
}

TEST(PostAccumulateGradHook, SeesTheSumAndMayStepAndClear) {
  const Tensor x = leaf({1, 2});
  std::vector<Numbers> seen;
  HookHandle handle = register_post_accumulate_grad_hook(x, [&](const Tensor& parameter) {
    seen.push_back(numbers(grad(parameter)));
    if (seen.size() < 3) return;
    ops::call_by_name("aten::sub_.Tensor", parameter, grad(parameter));
    set_grad(parameter, {});
  });
  for (int i = 0; i < 3; ++i) backward(sum(scale(x, 2)));
  EXPECT_THAT(seen, ElementsAre(Numbers{2, 2}, Numbers{4, 4}, Numbers{6, 6}));
  EXPECT_EQ(numbers(x), (Numbers{-5, -4}));
  EXPECT_FALSE(grad(x).defined());
  handle.remove();
  backward(sum(scale(x, 2)));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_THAT(error_of([&] { register_post_accumulate_grad_hook(scale(x, 2), [](const Tensor&) {}); }),
              HasSubstr("not leaves or require no gradient"));
  EXPECT_THAT(error_of([&] { register_post_accumulate_grad_hook(constant({1}), [](const Tensor&) {}); }),
              HasSubstr("not leaves or require no gradient"));
}

}  // namespace
}  // namespace tensord::autograd::saved_hooks_test
