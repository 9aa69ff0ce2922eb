// Sparse gradients in a pass: sums with sparse and dense gradients, hooks, second gradients, and functions that refuse
// them.
#include <cmath>

#include "core/autograd/function.h"
#include "core/ops/sparse.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::sparse_gradient_test {
namespace {

Tensor indices(const std::vector<int64_t>& values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kInt64);
  std::copy(values.begin(), values.end(), out.data<int64_t>());
  return out;
}
Tensor rows_of(const Tensor& table, const std::vector<int64_t>& at, int64_t padding = -1, bool is_sparse = true) {
  return ops::call_by_name("aten::embedding", table, indices(at), padding, false, is_sparse);
}
Tensor table() { return leaf({1, 2, 3, 4, 5, 6}, {3, 2}); }
Tensor dense(const Tensor& gradient) { return ops::call_by_name("aten::to_dense", gradient); }
bool is_sparse_gradient(const Tensor& gradient) { return static_cast<bool>(ops::as_sparse(gradient)); }

TEST(SparseGradient, HasARowForEachIndexThatIsNoPadding) {
  const Tensor x = table();
  backward(sum(mul(rows_of(x, {2, 0, 2, 1}, 1), constant({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}))));
  const ops::SparsePtr found = ops::as_sparse(grad(x));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nnz(), 3);
  EXPECT_FALSE(found->is_coalesced());
  EXPECT_THAT(numbers(found->indices()), ElementsAre(2, 0, 2));
  EXPECT_THAT(numbers(found->values()), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(numbers(dense(grad(x))), ElementsAre(3, 4, 0, 0, 6, 8));
  EXPECT_EQ(grad(x).sizes(), x.sizes());
  EXPECT_THAT(error_of([&] { grad(x).contiguous().data<double>(); }), HasSubstr("has no strides"));
}

TEST(SparseGradient, SumsInAPassAndOverPasses) {
  for (const int threads : {1, 3}) {
    const Tensor x = table();
    const auto pass = [&](const Tensor& y) { backward(sum(y), {}, {.threads = threads}); };
    pass(add(rows_of(x, {0, 2}), scale(rows_of(x, {2, 2}), 10)));  // sparse + sparse in one pass
    EXPECT_TRUE(is_sparse_gradient(grad(x)));
    EXPECT_THAT(numbers(dense(grad(x))), ElementsAre(1, 1, 0, 0, 21, 21));
    pass(rows_of(x, {1}));  // and over several passes
    EXPECT_TRUE(is_sparse_gradient(grad(x)));
    EXPECT_THAT(numbers(dense(grad(x))), ElementsAre(1, 1, 1, 1, 21, 21));
    pass(scale(x, 2));  // plus a dense one
    EXPECT_FALSE(is_sparse_gradient(grad(x)));
    EXPECT_THAT(numbers(grad(x)), ElementsAre(3, 3, 3, 3, 23, 23));
    const Tensor kept = grad(x);
    pass(rows_of(x, {0, 0}));  // and a sparse one added to a dense one, in place
    EXPECT_TRUE(grad(x).is_same(kept));
    EXPECT_THAT(numbers(grad(x)), ElementsAre(5, 5, 3, 3, 23, 23));
    const Tensor y = table();
    backward(sum(add(scale(y, 2), mul(rows_of(y, {0, 0, 1}), y))), {}, {.threads = threads});  // both in one pass
    EXPECT_THAT(numbers(grad(y)), ElementsAre(1 + 2 + 4, 2 + 2 + 6, 5 + 2 + 1, 6 + 2 + 2, 2 + 3, 2 + 4));
  }
}

TEST(SparseGradient, HooksSeeAndReplaceIt) {
  const Tensor x = table();
  int calls = 0;
  register_hook(x, [&](const Tensor& gradient) {
    calls += is_sparse_gradient(gradient) ? 1 : 100;
    return ops::call_by_name("aten::mul.Scalar", gradient, 3.0);
  });
  backward(sum(rows_of(x, {1, 1})));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(is_sparse_gradient(grad(x)));
  EXPECT_THAT(numbers(dense(grad(x))), ElementsAre(0, 0, 6, 6, 0, 0));
}

TEST(SparseGradient, WrittenValuesAreItsOwn) {
  const Tensor x = table(), incoming = constant({1, 2, 3, 4}, {2, 2});
  backward(rows_of(x, {0, 1}), incoming);
  ops::call_by_name<ops::Value>("aten::mul_.Scalar", grad(x), 5.0);
  EXPECT_THAT(numbers(incoming), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(numbers(dense(grad(x))), ElementsAre(5, 10, 15, 20, 0, 0));
}

TEST(SparseGradient, IsGivenByGradAndSetByHand) {
  const Tensor x = table(), y = sum(rows_of(x, {2}));
  const Tensor found = autograd::grad(std::span(&y, 1), std::span(&x, 1)).front();
  EXPECT_TRUE(is_sparse_gradient(found));
  EXPECT_FALSE(grad(x).defined());
  set_grad(x, found);
  EXPECT_THAT(numbers(dense(grad(x))), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(error_of([&] { set_grad(leaf({1, 2}), found); }), HasSubstr("different size"));
}

TEST(SparseGradient, HasGradientsItself) {
  const auto second = [](bool is_sparse) {
    const Tensor x = table(), w = leaf({1, 2, 3, 4}, {2, 2});
    const Tensor rows = rows_of(x, {2, 2}, -1, is_sparse);
    const Tensor y = sum(mul(mul(rows, rows), w));
    const Tensor first = autograd::grad(std::span(&y, 1), std::span(&x, 1), {}, {.create_graph = true}).front();
    EXPECT_EQ(is_sparse_gradient(first), is_sparse);
    const Tensor whole = is_sparse ? dense(first) : first;
    backward(sum(mul(whole, whole)));
    return numbers(grad(w));
  };
  EXPECT_EQ(second(true), second(false));
}

TEST(SparseGradient, IsSummedOverExpandedDimensions) {
  const Tensor x = leaf({1, 2}, {1, 2});
  backward(
      sum(rows_of(ops::call_by_name("aten::contiguous", ops::call_by_name("aten::expand", x, Dims{3, 2})), {1, 1, 2})));
  const Tensor found = grad(x);
  EXPECT_THAT(numbers(is_sparse_gradient(found) ? dense(found) : found), ElementsAre(3, 3));
}

TEST(SparseGradient, EndsInOneErrorWhereItCannotGo) {
  const Tensor x = table();
  const auto error_through = [&](const Tensor& y) { return error_of([&] { backward(sum(rows_of(y, {1}))); }); };
  EXPECT_THAT(error_through(scale(x, 3)), HasSubstr("Function MulBackward1 does not take a sparse gradient"));
  EXPECT_THAT(error_through(ops::call_by_name("aten::softmax.int", x, 1, ops::Value())),
              HasSubstr("Function SoftmaxBackward0 does not take a sparse gradient: aten::"));
  EXPECT_FALSE(grad(x).defined());
  EXPECT_THAT(error_of([&] {
                ops::call_by_name("aten::embedding_sparse_backward", x, indices({0, 1, 2}), 3, -1, true);
              }),
              HasSubstr("scale_grad_by_freq not supported with sparse gradients"));
  EXPECT_THAT(error_of([&] {
                ops::call_by_name("aten::embedding_sparse_backward", x, indices({0, 1, 3}), 3, -1, false);
              }),
              HasSubstr("index 3 is out of range"));
}

// Passes the result of a given function of the sparse gradient to the first of two arguments.
struct Passes : Function<Passes> {
  static Tensor forward(FunctionContext&, const Tensor& x, const Tensor&) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return {change(grads.at(0)), Tensor()};
  }
  static inline std::function<Tensor(const Tensor&)> change;
};

TEST(SparseGradient, GoesThroughFunctionsThatKnowIt) {
  const auto gradient_by = [](std::function<Tensor(const Tensor&)> change) {
    Passes::change = std::move(change);
    const Tensor x = table(), other = leaf({1});
    backward(sum(rows_of(Passes::apply(x, other), {1})));
    EXPECT_FALSE(grad(other).defined());
    return grad(x);
  };
  const Tensor same = gradient_by([](const Tensor& gradient) { return gradient; });
  EXPECT_TRUE(is_sparse_gradient(same));
  EXPECT_THAT(numbers(dense(same)), ElementsAre(0, 0, 1, 1, 0, 0));
  const Tensor of_all = gradient_by(dense);
  EXPECT_FALSE(is_sparse_gradient(of_all));
  EXPECT_THAT(numbers(of_all), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_FALSE(gradient_by([](const Tensor&) { return Tensor(); }).defined());
  // A tensor of the same type without elements, and one of another shape.
  EXPECT_EQ(error_of([&] { gradient_by([](const Tensor& g) { return Tensor::meta(g.sizes(), g.dtype()); }); }),
            "Function PassesBackward does not take a sparse gradient");
  EXPECT_THAT(error_of([&] {
                gradient_by([](const Tensor&) {
                  const EnableGradGuard recorded;
                  const Tensor larger = leaf({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
                  return grad(std::vector{sum(rows_of(larger, {3}))}, std::vector{larger}).at(0);
                });
              }),
              HasSubstr("got sparse_coo float64[4, 2] but expected [3, 2]"));
}

TEST(SparseGradient, OfRecordedPassesIsAddedOutOfPlace) {
  const Tensor x = table(), w = leaf({2});
  const auto pass = [&](const Tensor& y) { backward(sum(mul(y, w)), {}, {.create_graph = true}); };
  pass(rows_of(x, {0}));
  const Tensor first = grad(x);
  EXPECT_TRUE(is_sparse_gradient(first));
  EXPECT_TRUE(requires_grad(first));
  set_grad(x, {});
  pass(x);
  const Tensor second = grad(x);
  EXPECT_THAT(numbers(second), ElementsAre(2, 2, 2, 2, 2, 2));
  pass(rows_of(x, {2}));
  EXPECT_FALSE(grad(x).is_same(second));
  EXPECT_THAT(numbers(second), ElementsAre(2, 2, 2, 2, 2, 2));
  EXPECT_THAT(numbers(grad(x)), ElementsAre(2, 2, 2, 2, 4, 4));
  const Tensor total = sum(grad(x));
  set_grad(x, {});
  EXPECT_EQ(numbers(autograd::grad(std::span(&total, 1), std::span(&w, 1)).front()), (Numbers{8}));
}

TEST(SparseGradient, IsLookedAtForNan) {
  const AnomalyModeGuard guard;
  const auto pass = [](double factor) {
    const Tensor x = table();
    backward(sum(scale(rows_of(x, {1}), factor)));
    EXPECT_TRUE(is_sparse_gradient(grad(x)));
  };
  pass(2);
  const auto incoming = [](const Numbers& gradient) {
    return error_of([&] { backward(rows_of(table(), {1}), constant(gradient, {1, 2})); });
  };
  EXPECT_EQ(incoming({1, 2}), "no error");
  EXPECT_THAT(incoming({1, NAN}), HasSubstr("Function 'EmbeddingBackward0' returned nan values in its 0th output."));
}

TEST(SparseGradient, OfBagsIsThatOfTheDenseOnes) {
  for (const int64_t mode : {0, 1}) {
    for (const int64_t padding : {-1, 1}) {
      const auto run = [&](bool is_sparse) {
        const Tensor x = table(), weights = leaf({.5, -1, 2, 3, .25});
        const auto bags = ops::run(ops::get_op("aten::embedding_bag.padding_idx"),
                                   std::vector<ops::Value>{x, indices({2, 1, 0, 2, 1}), indices({0, 2, 2}), false, mode,
                                                           is_sparse, mode == 0 ? ops::Value(weights) : ops::Value(),
                                                           false, padding < 0 ? ops::Value() : ops::Value(padding)});
        backward(sum(mul(bags[0].to_tensor(), constant({1, 2, 3, 4, 5, 6}, {3, 2}))));
        EXPECT_EQ(is_sparse_gradient(grad(x)), is_sparse);
        Numbers all = numbers(is_sparse ? dense(grad(x)) : grad(x));
        for (const double each : numbers(grad(weights))) all.push_back(each);
        return all;
      };
      const Numbers sparse = run(true), expected = run(false);
      ASSERT_EQ(sparse.size(), expected.size());
      for (size_t i = 0; i < sparse.size(); ++i) EXPECT_NEAR(sparse[i], expected[i], 1e-12) << mode << " " << padding;
    }
  }
}

}  // namespace
}  // namespace tensord::autograd::sparse_gradient_test
