// Undefined gradients: what each kind of node gets then, and hooks.
#include "core/autograd/function.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::undefined_gradients_test {
namespace {

struct Stops : Function<Stops> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor>) { return {Tensor()}; }
};

TEST(UndefinedGradients, ComeToALeaf) {
  const Tensor x = leaf({1, 2});
  backward(sum(Stops::apply(x)));
  EXPECT_FALSE(grad(x).defined());
  backward(add(sum(Stops::apply(x)), sum(scale(x, 3))));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 3}));
}

TEST(UndefinedGradients, ComeToAnOperator) {
  const Tensor x = leaf({1, 2});
  for (const char* name : {"aten::exp", "aten::sigmoid", "aten::t"}) {
    backward(sum(Stops::apply(ops::call_by_name(name, x))));
    EXPECT_FALSE(grad(x).defined()) << name;
  }
}

TEST(UndefinedGradients, ComeToWhatWasWrittenInPart) {
  const Tensor x = leaf({1, 2});
  const auto through = [&](bool is_whole) {
    const Tensor whole = scale(x, 1), part = slice(whole, 0, 1);
    scale_in_place(part, 5);
    const Tensor& seen = is_whole ? whole : part;
    EXPECT_EQ(name_of(grad_fn(seen)), is_whole ? "CopySlices" : "AsStridedBackward0");
    backward(sum(Stops::apply(seen)));
  };
  through(true);
  EXPECT_FALSE(grad(x).defined());
  through(false);
  EXPECT_FALSE(grad(x).defined());
}

TEST(UndefinedGradients, AreNotShownToHooksNorKept) {
  const Tensor x = leaf({1, 2});
  const std::vector<Tensor> rows = ops::call_by_name<std::vector<Tensor>>("aten::unbind.int", x, 0);
  int calls[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    register_hook(rows[i], [&calls, i](const Tensor& gradient) {
      calls[i] += gradient.defined() ? 1 : 100;
      return Tensor();
    });
    retain_grad(rows[i]);
  }
  backward(scale(rows[1], 4));
  EXPECT_THAT(calls, ElementsAre(0, 1));
  EXPECT_FALSE(grad(rows[0]).defined());
  EXPECT_EQ(numbers(grad(rows[1])), (Numbers{4}));
  EXPECT_EQ(numbers(grad(x)), (Numbers{0, 4}));
}

TEST(UndefinedGradients, AreNoNan) {
  const AnomalyModeGuard guard;
  const Tensor x = leaf({1, 2});
  backward(sum(mul(x, constant({3, 4}))));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 4}));
}

}  // namespace
}  // namespace tensord::autograd::undefined_gradients_test
