// Operators on lists of tensors ("_foreach_add"), which PyTorch's optimizers call: the operator of that name for each
// item, in order.
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/script.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::TensorList;
using Scalars = std::vector<Scalar>;

template <class T>
const T& item_of(const T& argument, size_t) {
  return argument;
}
const Tensor& item_of(const TensorList& list, size_t i) { return list[i]; }
const Scalar& item_of(const Scalars& list, size_t i) { return list[i]; }

template <class T>
void check_length(size_t, const T&) {}
void check_length(size_t count, const TensorList& list) {
  check(list.size() == count, "Tensor lists must have the same number of tensors, got ", count, " and ", list.size());
}
void check_length(size_t count, const Scalars& list) {
  check(list.size() == count, "Tensor list must have same number of elements as scalar list.");
}

// List arguments are split by item; all others go to every item.
template <class... Arguments>
TensorList each(const char* name, const TensorList& self, const Arguments&... arguments) {
  check(!self.empty(), "Tensor list must have at least one tensor.");
  (check_length(self.size(), arguments), ...);
  TensorList out;
  for (size_t i = 0; i < self.size(); ++i) out.push_back(ops::call_by_name(name, self[i], item_of(arguments, i)...));
  return out;
}

// The functional operator and its in-place variant. TARGET and WRITTEN are the overloads of NAME and NAME_ that the
// items use.
#define FOREACH_FORMS(NAME, OVERLOAD, TARGET, WRITTEN, PARAMETERS, ...)        \
  OP("aten::_foreach_" NAME OVERLOAD)                                          \
      .impl([] PARAMETERS { return each("aten::" NAME TARGET, __VA_ARGS__); }) \
      .composite();                                                            \
  OP("aten::_foreach_" NAME "_" OVERLOAD)                                      \
      .impl([] PARAMETERS { each("aten::" NAME "_" WRITTEN, __VA_ARGS__); })   \
      .composite();
#define FOREACH(NAME, OVERLOAD, TARGET, PARAMETERS, ...) \
  FOREACH_FORMS(NAME, OVERLOAD, TARGET, TARGET, PARAMETERS, __VA_ARGS__)

#define UNARY(NAME) FOREACH(NAME, "", "", (const TensorList& self), self)
UNARY("abs")
UNARY("acos")
UNARY("asin")
UNARY("atan")
UNARY("ceil")
UNARY("cos")
UNARY("cosh")
UNARY("erf")
UNARY("erfc")
UNARY("exp")
UNARY("expm1")
UNARY("floor")
UNARY("frac")
UNARY("lgamma")
UNARY("log")
UNARY("log10")
UNARY("log1p")
UNARY("log2")
UNARY("neg")
UNARY("reciprocal")
UNARY("round")
UNARY("rsqrt")
UNARY("sigmoid")
UNARY("sign")
UNARY("sin")
UNARY("sinh")
UNARY("sqrt")
UNARY("tan")
UNARY("tanh")
UNARY("trunc")
#undef UNARY

// The second operand: a list of tensors, a list of numbers, one number.
#define BY_NUMBERS(NAME, TARGET)                                                                 \
  FOREACH(NAME, ".Scalar", TARGET, (const TensorList& self, const Scalar& scalar), self, scalar) \
  FOREACH(NAME, ".ScalarList", TARGET, (const TensorList& self, const Scalars& scalars), self, scalars)
#define BY_ALPHA(NAME)                                                                                            \
  FOREACH(NAME, ".List", ".Tensor", (const TensorList& self, const TensorList& other, const Scalar& alpha), self, \
          other, alpha)
#define BY_LIST(NAME, TARGET) \
  FOREACH(NAME, ".List", TARGET, (const TensorList& self, const TensorList& other), self, other)
BY_NUMBERS("add", ".Scalar")
BY_NUMBERS("sub", ".Scalar")
BY_NUMBERS("mul", ".Scalar")
BY_NUMBERS("div", ".Scalar")
BY_NUMBERS("clamp_min", "")
BY_NUMBERS("clamp_max", "")
BY_ALPHA("add")
BY_ALPHA("sub")
BY_LIST("mul", ".Tensor")
BY_LIST("div", ".Tensor")
BY_LIST("clamp_min", ".Tensor")
BY_LIST("clamp_max", ".Tensor")
#undef BY_NUMBERS
#undef BY_ALPHA
#undef BY_LIST

// The second operand is one tensor.
FOREACH("add", ".Tensor", ".Tensor", (const TensorList& self, const Tensor& other, const Scalar& alpha), self, other,
        alpha)
FOREACH("mul", ".Tensor", ".Tensor", (const TensorList& self, const Tensor& other), self, other)
FOREACH("div", ".Tensor", ".Tensor", (const TensorList& self, const Tensor& other), self, other)

FOREACH_FORMS("pow", ".List", ".Tensor_Tensor", ".Tensor", (const TensorList& self, const TensorList& exponent), self,
              exponent)
FOREACH_FORMS("pow", ".Scalar", ".Tensor_Scalar", ".Scalar", (const TensorList& self, const Scalar& exponent), self,
              exponent)
FOREACH_FORMS("pow", ".ScalarList", ".Tensor_Scalar", ".Scalar", (const TensorList& self, const Scalars& exponent),
              self, exponent)

#define QUOTIENT(NAME)                                                                                                \
  FOREACH(NAME, ".Scalar", "",                                                                                        \
          (const TensorList& self, const TensorList& a, const TensorList& b, const Scalar& value), self, a, b, value) \
  FOREACH(NAME, ".ScalarList", "",                                                                                    \
          (const TensorList& self, const TensorList& a, const TensorList& b, const Scalars& scalars), self, a, b,     \
          scalars)
QUOTIENT("addcmul")
QUOTIENT("addcdiv")
#undef QUOTIENT

FOREACH("lerp", ".List", ".Tensor", (const TensorList& self, const TensorList& ends, const TensorList& weights), self,
        ends, weights)
FOREACH("lerp", ".Scalar", ".Scalar", (const TensorList& self, const TensorList& ends, const Scalar& weight), self,
        ends, weight)
FOREACH("lerp", ".ScalarList", ".Scalar", (const TensorList& self, const TensorList& ends, const Scalars& weights),
        self, ends, weights)

// The numbers of a tensor, one for each item.
Scalars numbers_of(const Tensor& numbers, size_t count) {
  check(numbers.ndim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", numbers.ndim(), " instead.");
  check(numbers.size(0) == static_cast<int64_t>(count), "Expected length of scalars to match input of length ", count,
        " but got ", numbers.size(0), " instead.");
  Scalars out;
  for (int64_t i = 0; i < numbers.size(0); ++i) {
    out.push_back(ops::item(ops::select(numbers, int64_t{0}, i)));
  }
  return out;
}
#define QUOTIENT_BY_TENSOR(NAME)                                                                                 \
  FOREACH(NAME, ".Tensor", "",                                                                                   \
          (const TensorList& self, const TensorList& a, const TensorList& b, const Tensor& scalars), self, a, b, \
          numbers_of(scalars, self.size()))
QUOTIENT_BY_TENSOR("addcmul")
QUOTIENT_BY_TENSOR("addcdiv")
#undef QUOTIENT_BY_TENSOR
#undef FOREACH
#undef FOREACH_FORMS

#define LARGER(NAME, CLAMP)                                                                                        \
  OP("aten::_foreach_" NAME ".List")                                                                               \
      .impl([](const TensorList& self, const TensorList& other) { return each("aten::" NAME, self, other); })      \
      .composite();                                                                                                \
  OP("aten::_foreach_" NAME "_.List")                                                                              \
      .impl([](const TensorList& self, const TensorList& other) { each("aten::" CLAMP "_.Tensor", self, other); }) \
      .composite();
LARGER("maximum", "clamp_min")
LARGER("minimum", "clamp_max")
#undef LARGER

#define LARGER_THAN_NUMBERS(NAME, CLAMP)                                                                        \
  OP("aten::_foreach_" NAME ".Scalar")                                                                          \
      .impl([](const TensorList& self, const Scalar& scalar) { return each("aten::" CLAMP, self, scalar); })    \
      .composite();                                                                                             \
  OP("aten::_foreach_" NAME "_.Scalar")                                                                         \
      .impl([](const TensorList& self, const Scalar& scalar) { each("aten::" CLAMP "_", self, scalar); })       \
      .composite();                                                                                             \
  OP("aten::_foreach_" NAME ".ScalarList")                                                                      \
      .impl([](const TensorList& self, const Scalars& scalars) { return each("aten::" CLAMP, self, scalars); }) \
      .composite();                                                                                             \
  OP("aten::_foreach_" NAME "_.ScalarList")                                                                     \
      .impl([](const TensorList& self, const Scalars& scalars) { each("aten::" CLAMP "_", self, scalars); })    \
      .composite();
LARGER_THAN_NUMBERS("maximum", "clamp_min")
LARGER_THAN_NUMBERS("minimum", "clamp_max")
#undef LARGER_THAN_NUMBERS

OP("aten::_foreach_max").impl([](const TensorList& self) { return each("aten::max", self); }).composite();

OP("aten::_foreach_norm.Scalar")
    .impl([](const TensorList& self, const Scalar& ord, std::optional<DType> dtype) {
      return each("aten::linalg_vector_norm", self, ord, ops::Value(), false, dtype);
    })
    .composite();
OP("aten::_foreach_zero_").impl([](const TensorList& self) { each("aten::zero_", self); }).composite();
OP("aten::_foreach_copy_")
    .impl([](const TensorList& self, const TensorList& source, bool non_blocking) {
      each("aten::copy_", self, source, non_blocking);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
