// The typed operators, indexing and operator overloads of include/tensord, compared with the operators by name.
#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "tensord/tensord.h"
#include "tests/api/items.h"

namespace tensord::api_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Operators, ArgumentsArriveInTheirPlaces) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f}, {2, 2}), y = tensor({10.f, 20.f, 30.f, 40.f}, {2, 2});
  EXPECT_THAT(items_of(add(x, y)), ElementsAre(11, 22, 33, 44));
  EXPECT_THAT(items_of(add(x, y, {.alpha = 2})), ElementsAre(21, 42, 63, 84));
  EXPECT_THAT(items_of(add(x, 0.5)), ElementsAre(1.5, 2.5, 3.5, 4.5));
  EXPECT_THAT(items_of(sum(x, 0)), ElementsAre(4, 6));
  EXPECT_THAT(items_of<double>(sum(x, {0, 1}, true, {.dtype = DType::kFloat64})), ElementsAre(10));
  EXPECT_EQ(sum(x, {0, 1}, true).ndim(), 2);
  EXPECT_THAT(items_of(div(y, 3, {.rounding_mode = "floor"})), ElementsAre(3, 6, 10, 13));
  EXPECT_THAT(items_of(cat({x, y}, 1)), ElementsAre(1, 2, 10, 20, 3, 4, 30, 40));
  EXPECT_THAT(items_of(clamp(x, 2, 3)), ElementsAre(2, 2, 3, 3));
  EXPECT_THAT(items_of(clamp(x, std::nullopt, 3)), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(items_of(view(x, {4})), ElementsAre(1, 2, 3, 4));
  const Dims shape{4, 1};
  EXPECT_EQ(view(x, shape).sizes(), shape);
  EXPECT_THAT(items_of(std(x, 0)), ElementsAre(std::sqrt(2.f), std::sqrt(2.f)));  // a dimension, not `unbiased`
  EXPECT_THAT(items_of(std(x, false)), ElementsAre(std::sqrt(1.25f)));
  EXPECT_THAT(items_of<int64_t>(arange(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(items_of(full({2}, 7, {.dtype = DType::kFloat32})), ElementsAre(7, 7));
  EXPECT_THAT(items_of(where(gt(x, 2), x, 0)), ElementsAre(0, 0, 3, 4));
}

TEST(Operators, SeveralResultsAreTuples) {
  const Tensor x = tensor({3.f, 1.f, 2.f});
  const auto [found, at] = sort(x, -1, true);
  EXPECT_THAT(items_of(found), ElementsAre(3, 2, 1));
  EXPECT_THAT(items_of<int64_t>(at), ElementsAre(0, 2, 1));
  const std::vector<Tensor> parts = chunk(x, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(items_of(parts[1]), ElementsAre(1));
  EXPECT_TRUE(equal(x, x));
}

// Results that the output mask omits are undefined.
TEST(Operators, ResultsThatAreLeftOut) {
  const Tensor x = tensor({1.f, 2.f, 4.f, 8.f}, {2, 2}), moments = tensor({1.5f, 6.f}, {2, 1});
  const auto [dx, dweight, dbias] =
      native_layer_norm_backward(x, x, {2}, moments, moments, std::nullopt, std::nullopt, {false, false, true});
  EXPECT_FALSE(dx.defined());
  EXPECT_FALSE(dweight.defined());
  EXPECT_THAT(items_of(dbias), ElementsAre(5, 10));
}

TEST(Operators, WriteInPlaceAndOut) {
  const Tensor x = tensor({1.f, 2.f}), out = Tensor::empty(Dims{2}, DType::kFloat32);
  EXPECT_TRUE(add_(x, 1).is_same(x));
  EXPECT_THAT(items_of(x), ElementsAre(2, 3));
  EXPECT_TRUE(mul_out(out, x, x).is_same(out));
  EXPECT_THAT(items_of(out), ElementsAre(4, 9));
}

TEST(Operators, OptionalTensors) {
  const Tensor x = tensor({1.f, 2.f}, {1, 2}), weight = tensor({1.f, 1.f, 2.f, 0.f}, {2, 2}), bias = tensor({1.f, 2.f});
  EXPECT_THAT(items_of(linear(x, weight, bias)), ElementsAre(4, 4));
  EXPECT_THAT(items_of(linear(x, weight)), ElementsAre(3, 2));
  EXPECT_THAT(items_of(linear(x, weight, Tensor())), ElementsAre(3, 2));
}

TEST(Operators, SayWhatIsWrong) {
  const Tensor x = tensor({1.f, 2.f});
  EXPECT_THAT(error_of([&] { add(x, Tensor()); }), HasSubstr("aten::add.Tensor: argument 'other' is an undefined"));
  EXPECT_THAT(error_of([&] { matmul(x, tensor({1.f, 2.f, 3.f})); }), HasSubstr("matmul"));
}

TEST(Operators, HaveGradients) {
  const Tensor x = tensor({1.f, 2.f});
  autograd::set_requires_grad(x);
  autograd::backward(sum(x * x * 3));
  EXPECT_THAT(items_of(autograd::grad(x)), ElementsAre(6, 12));
}

std::string printed(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

// What PyTorch 2.15 prints for each, but exact scalars and whole numbers of more than six digits.
TEST(Printing, IsPyTorchs) {
  EXPECT_EQ(printed(tensor<int64_t>({1, -200, 3, 4}, {2, 2})), "   1 -200\n   3    4\n[ CPULongType{2,2} ]");
  EXPECT_EQ(printed(tensor({0.5f, -100.25f, 3.f})), "   0.5000\n-100.2500\n   3.0000\n[ CPUFloatType{3} ]");
  EXPECT_EQ(printed(to(reshape(arange(8), {2, 2, 2}), DType::kFloat64)),
            "(1,.,.) = \n 0  1\n 2  3\n\n(2,.,.) = \n 4  5\n 6  7\n[ CPUDoubleType{2,2,2} ]");
  EXPECT_EQ(printed(reshape(arange(8), {2, 2, 2, 1})),
            "(1,1,.,.) = \n 0\n 1\n\n(2,1,.,.) = \n 4\n 5\n\n(1,2,.,.) = \n 2\n 3\n\n(2,2,.,.) = \n 6\n 7\n"
            "[ CPULongType{2,2,2,1} ]");
  EXPECT_EQ(printed(tensor({1e10f, 1.f})), " 1.0000e+10\n 1.0000e+00\n[ CPUFloatType{2} ]");
  EXPECT_EQ(printed(tensor({1e200, 1.5})), " 1.0000e+200\n  1.5000e+00\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(tensor({0.001f, 0.002f})), "0.001 *\n 1.0000\n 2.0000\n[ CPUFloatType{2} ]");
  EXPECT_EQ(printed(tensor({123456.5f, -100000.25f})), "100000 *\n 1.2346\n-1.0000\n[ CPUFloatType{2} ]");
  EXPECT_EQ(printed(tensor({NAN, INFINITY, 1.5f})), "    nan\n    inf\n 1.5000\n[ CPUFloatType{3} ]");
  EXPECT_EQ(printed(tensor({-NAN, -INFINITY})), "nan\n-inf\n[ CPUFloatType{2} ]");
  EXPECT_EQ(printed(tensor({10000000.f, 2.f})), " 10000000\n        2\n[ CPUFloatType{2} ]");
  EXPECT_EQ(printed(tensor({true, false})), " 1\n 0\n[ CPUBoolType{2} ]");
  EXPECT_EQ(printed(ones({1}, {.dtype = DType::kBFloat16})), " 1\n[ CPUBFloat16Type{1} ]");
  EXPECT_EQ(printed(zeros({2, 0, 3})), "[ CPUFloatType{2,0,3} ]");
  EXPECT_EQ(printed(Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(printed(Tensor::meta(Dims{2}, DType::kInt32)), "[ MetaIntType{2} ]");
}

TEST(Printing, OfOneElementIsExact) {
  EXPECT_EQ(printed(Tensor::scalar(0.1f)), "0.1\n[ CPUFloatType{} ]");
  EXPECT_EQ(printed(Tensor::scalar(1 / 3.0)), "0.3333333333333333\n[ CPUDoubleType{} ]");
  EXPECT_EQ(printed(Tensor::scalar<int64_t>(9223372036854775807)), "9223372036854775807\n[ CPULongType{} ]");
  EXPECT_EQ(printed(Tensor::scalar(true)), "1\n[ CPUBoolType{} ]");
}

TEST(Printing, WideMatricesAreInParts) {
  const std::string text = printed(reshape(arange(60), {2, 30}));
  EXPECT_THAT(text, ::testing::StartsWith("Columns 1 to 20\n  0   1   2 "));
  EXPECT_THAT(text, HasSubstr(" 49\n\nColumns 21 to 30\n 20  21 "));
}

TEST(Printing, OfComplexNumbersHasBothParts) {
  const Tensor x = complex(tensor({1.f, 3.5f}), tensor({2.f, -1.f}));
  EXPECT_EQ(printed(x), " 1.0000+2.0000j\n 3.5000-1.0000j\n[ CPUComplexFloatType{2} ]");
  EXPECT_EQ(printed(sum(x)), "4.5+1j\n[ CPUComplexFloatType{} ]");
}

TEST(Printing, LeavesGradientsAndTheStreamAlone) {
  const Tensor x = tensor({1.f, 2.f}).requires_grad_();
  std::ostringstream out;
  out << std::hex << x * 2 << "\n" << x.dtype() << " " << x.device() << " " << 255;
  EXPECT_EQ(out.str(), " 2\n 4\n[ CPUFloatType{2} ]\nfloat32 cpu ff");
}

TEST(Signs, AreTheOperators) {
  const Tensor x = tensor({1.f, 2.f, 4.f}), y = tensor({2.f, 2.f, 2.f});
  EXPECT_THAT(items_of(x + y * 2 - 1), ElementsAre(4, 5, 7));
  EXPECT_THAT(items_of(1 - x), ElementsAre(0, -1, -3));
  EXPECT_THAT(items_of(2 / x), ElementsAre(2, 1, 0.5));
  EXPECT_THAT(items_of(-x / y), ElementsAre(-0.5, -1, -2));
  EXPECT_THAT(items_of<bool>((x >= y) & ~(x == 4)), ElementsAre(false, true, false));
  x += 1;
  x *= y;
  EXPECT_THAT(items_of(x), ElementsAre(4, 6, 10));
}

TEST(Index, AsInPython) {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  EXPECT_THAT(items_of<int64_t>(index(x, {1, 2})), ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(items_of<int64_t>(index(x, {Ellipsis, -1})), ElementsAre(3, 7, 11, 15, 19, 23));
  EXPECT_THAT(items_of<int64_t>(index(x, {0, Slice(1, std::nullopt), Slice(0, 4, 2)})), ElementsAre(4, 6, 8, 10));
  EXPECT_EQ(index(x, {None, Slice(), 0, None}).sizes(), (Dims{1, 2, 1, 4}));
  const Tensor rows = tensor<int64_t>({2, 0});
  EXPECT_THAT(items_of<int64_t>(index(x, {1, rows, 0})), ElementsAre(20, 12));
  EXPECT_EQ(index(x, {rows - 1, Slice(), rows}).sizes(), (Dims{2, 3}));
  EXPECT_THAT(items_of<int64_t>(index(x, {x > 21})), ElementsAre(22, 23));
  EXPECT_EQ(index(x, {true}).sizes(), (Dims{1, 2, 3, 4}));
  EXPECT_FALSE(index(x, {Ellipsis}).is_same(x));
  EXPECT_THAT(error_of([&] { index(x, {2}); }), HasSubstr("2 is out of bounds for dimension 0 with size 2"));
  EXPECT_THAT(error_of([&] { index(x, {0, 0, 0, 0}); }), HasSubstr("too many indices"));
  EXPECT_THAT(error_of([&] { index(x, {Slice(0, 1, -1)}); }), HasSubstr("step of a slice"));
}

TEST(Index, Assignment) {
  const Tensor x = zeros({2, 3});
  EXPECT_TRUE(index_put_(x, {0, Slice(1, 3)}, 5).is_same(x));
  index_put_(x, {x == 5}, tensor({1.f, 2.f}));
  EXPECT_THAT(items_of(x), ElementsAre(0, 1, 2, 0, 0, 0));
  index_put_(x, {1}, tensor({7.f, 8.f, 9.f}, {1, 3}));
  index_put_(x, {tensor<int64_t>({0, 0}), 0}, tensor({1.f, 1.f}), true);
  EXPECT_THAT(items_of(x), ElementsAre(2, 1, 2, 7, 8, 9));
  index_put_(x, {1}, 1, true);
  EXPECT_THAT(items_of(x), ElementsAre(2, 1, 2, 8, 9, 10));
}

TEST(Random, OneSeedGivesTheSameNumbers) {
  manual_seed(3);
  const Tensor a = randn({4});
  manual_seed(3);
  EXPECT_TRUE(equal(a, randn({4})));
}

}  // namespace
}  // namespace tensord::api_test
