// Operators as members of Tensor: they call the functions of the same names and are recorded by autograd.
#include <tensord/tensord.h>
//
#include <gmock/gmock.h>

#include "tests/api/items.h"

namespace tensord::methods_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kInvalidArgument ? error.what() : "another code";
  }
  return "no error";
}

TEST(Methods, AreTheFunctions) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f}, {2, 2}), y = tensor({10.f, 20.f, 30.f, 40.f}, {2, 2});
  EXPECT_THAT(items_of(x.add(y)), ElementsAre(11, 22, 33, 44));
  EXPECT_THAT(items_of(x.add(y, {.alpha = 2})), ElementsAre(21, 42, 63, 84));
  EXPECT_THAT(items_of(x.add(0.5)), ElementsAre(1.5, 2.5, 3.5, 4.5));
  EXPECT_THAT(items_of(x.sum({1})), ElementsAre(3, 7));
  EXPECT_THAT(items_of(x.sum()), ElementsAre(10));
  EXPECT_EQ(x.sum({0, 1}, true).sizes(), (Dims{1, 1}));
  EXPECT_THAT(items_of<double>(x.sum({0}, false, {.dtype = DType::kFloat64})), ElementsAre(4, 6));
  EXPECT_THAT(items_of(x.clamp(std::nullopt, 3)), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(items_of(x.matmul(y).t()), ElementsAre(70, 150, 100, 220));
  const auto [largest, at] = x.max(1);
  EXPECT_THAT(items_of(largest), ElementsAre(2, 4));
  EXPECT_THAT(items_of<int64_t>(at), ElementsAre(1, 1));
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.sum().item<float>(), 10);
  EXPECT_EQ(x.sum().item<int>(), 10);
  EXPECT_THAT(error_of([&] { (x * 100).sum().item<int8_t>(); }), HasSubstr("1000 does not fit"));
}

TEST(Methods, WriteInPlace) {
  const Tensor x = tensor({-1.f, 2.f});
  EXPECT_TRUE(x.relu_().is_same(x));
  EXPECT_THAT(items_of(x), ElementsAre(0, 2));
  x.add_(1).mul_(x);
  EXPECT_THAT(items_of(x), ElementsAre(1, 9));
}

TEST(Methods, Index) {
  const Tensor x = arange(12).view({3, 4});
  EXPECT_EQ(x.index({Slice(1, 3), None}).sizes(), (Dims{2, 1, 4}));
  EXPECT_THAT(items_of<int64_t>(x[1]), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(x[2][3].item<int64_t>(), 11);
  x.index_put_({0}, 7);
  EXPECT_THAT(items_of<int64_t>(x[0]), ElementsAre(7, 7, 7, 7));
}

// The engine's own to(), clone() and contiguous() are not recorded, so programs must not get those.
TEST(Methods, AreRecorded) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f}, {2, 2}).requires_grad_();
  const Tensor y = x.to(DType::kFloat64).t().contiguous().clone().to(Device{});
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  y.pow(2).sum().backward();
  EXPECT_THAT(items_of(x.grad()), ElementsAre(2, 4, 6, 8));
  EXPECT_FALSE(x.detach().requires_grad());
  const Tensor z = x.clone();
  z.register_hook([](const Tensor& gradient) { return gradient * 3; });
  x.set_grad({});
  z.sum().backward();
  EXPECT_THAT(items_of(x.grad()), ElementsAre(3, 3, 3, 3));
}

TEST(Methods, OfUndefinedTensorsSayIt) {
  const Tensor none, x = tensor({1.f});
  EXPECT_THAT(error_of([&] { none.add(x); }), HasSubstr("aten::add.Tensor: argument 'self' is an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.relu_(); }), HasSubstr("aten::relu_: argument 'self' is an undefined tensor"));
  EXPECT_THAT(error_of([&] { x.add(none); }), HasSubstr("argument 'other' is an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.index({0}); }), HasSubstr("index: argument 'self' is an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.index_put_({0}, 1); }), HasSubstr("index_put_"));
  EXPECT_THAT(error_of([&] { none[0]; }), HasSubstr("index"));
  EXPECT_THAT(error_of([&] { none.to(DType::kFloat64); }), HasSubstr("'self' is an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.to(Device{}); }), HasSubstr("to of an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.contiguous(); }), HasSubstr("'self' is an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.sizes(); }), HasSubstr("sizes of an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.item<float>(); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([&] { none.backward(); }), HasSubstr("backward of an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.grad(); }), HasSubstr("grad of an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.requires_grad_(); }), HasSubstr("requires_grad_: argument"));
  EXPECT_THAT(error_of([&] { none.register_hook([](const Tensor& g) { return g; }); }),
              HasSubstr("register_hook of an undefined tensor"));
  EXPECT_THAT(error_of([&] { none.split(1); }), HasSubstr("'self' is an undefined tensor"));
}

}  // namespace
}  // namespace tensord::methods_test
