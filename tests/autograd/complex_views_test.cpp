// Writes through views of complex tensors as pairs of real numbers, and the reverse.
#include "tests/autograd/support.h"

namespace tensord::autograd::complex_views_test {
namespace {

Tensor view(const char* op, const Tensor& x) { return ops::call_by_name(op, x); }
Tensor as_real(const Tensor& x) { return view("aten::view_as_real", x); }
Tensor as_complex(const Tensor& x) { return view("aten::view_as_complex", x); }

// 0+0i, 1+2i, 3+4i …; a view omits the first, so that it starts inside its memory.
struct Numbered {
  Tensor pairs = leaf({0, 0, 1, 2, 3, 4}, {3, 2});
  Tensor complex = as_complex(scale(pairs, 1));
};

TEST(ComplexViews, RealOneOfAComplexBase) {
  const Numbered x;
  const Tensor base = mul(x.complex, constant({1, 1, 1})), real = as_real(slice(base, 1, 3));
  ASSERT_TRUE(base_of(real).is_same(base));
  scale_in_place(select(real, 1), 10);
  EXPECT_EQ(numbers(real), (Numbers{1, 2, 30, 40}));
  EXPECT_EQ(name_of(grad_fn(base)), "CopySlices");
  EXPECT_EQ(name_of(grad_fn(real)), "AsStridedBackward0");
  BackwardOptions retaining;
  retaining.retain_graph = true;
  backward(sum(mul(as_real(base), constant({1, 2, 3, 4, 5, 6}, {3, 2}))), {}, retaining);
  EXPECT_EQ(numbers(grad(x.pairs)), (Numbers{1, 2, 3, 4, 50, 60}));
  set_grad(x.pairs, {});
  backward(sum(mul(real, constant({3, 4, 5, 6}, {2, 2}))));
  EXPECT_EQ(numbers(grad(x.pairs)), (Numbers{0, 0, 3, 4, 50, 60}));
}

TEST(ComplexViews, ComplexOneOfARealBase) {
  const Tensor x = leaf({0, 0, 1, 2, 3, 4}, {3, 2});
  const Tensor base = scale(x, 1), complex = as_complex(slice(base, 1, 3));
  ASSERT_TRUE(base_of(complex).is_same(base));
  scale_in_place(select(complex, 1), 10);
  EXPECT_EQ(numbers(base), (Numbers{0, 0, 1, 2, 30, 40}));
  EXPECT_EQ(name_of(grad_fn(complex)), "AsStridedBackward0");
  BackwardOptions retaining;
  retaining.retain_graph = true;
  backward(sum(mul(base, constant({1, 2, 3, 4, 5, 6}, {3, 2}))), {}, retaining);
  EXPECT_EQ(numbers(grad(x)), (Numbers{1, 2, 3, 4, 50, 60}));
  set_grad(x, {});
  backward(sum(mul(as_real(complex), constant({3, 4, 5, 6}, {2, 2}))));
  EXPECT_EQ(numbers(grad(x)), (Numbers{0, 0, 3, 4, 50, 60}));
}

TEST(ComplexViews, ComplexOneOfAComplexBase) {
  const Numbered x;
  const Tensor base = mul(x.complex, constant({1, 1, 1})), part = slice(base, 1, 3);
  scale_in_place(select(part, 1), 10);
  EXPECT_EQ(name_of(grad_fn(part)), "AsStridedBackward0");
  BackwardOptions retaining;
  retaining.retain_graph = true;
  backward(sum(mul(as_real(base), constant({1, 2, 3, 4, 5, 6}, {3, 2}))), {}, retaining);
  EXPECT_EQ(numbers(grad(x.pairs)), (Numbers{1, 2, 3, 4, 50, 60}));
  set_grad(x.pairs, {});
  backward(sum(mul(as_real(part), constant({3, 4, 5, 6}, {2, 2}))));
  EXPECT_EQ(numbers(grad(x.pairs)), (Numbers{0, 0, 3, 4, 50, 60}));
}

}  // namespace
}  // namespace tensord::autograd::complex_views_test
