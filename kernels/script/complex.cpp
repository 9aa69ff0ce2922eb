// Complex numbers in scripts: construction, arithmetic, comparisons.
#include <cmath>
#include <complex>

#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Number = std::complex<double>;

Number number_of(const Value& value) { return value.to_complex(); }

// Operators on two complex numbers, or on a complex number and an int or a float.
template <class F>
void add_binary(const char* name, F f) {
  for (const char* overload : {"complex", "complex_int", "int_complex", "complex_float", "float_complex"}) {
    ops::OpBuilder(concat("aten::", name, ".", overload), __FILE__, __LINE__)
        .impl([f](const Value& x, const Value& y) -> Value { return f(number_of(x), number_of(y)); });
  }
}
[[maybe_unused]] const bool complex_registered = [] {
  add_binary("add", [](Number a, Number b) { return a + b; });
  add_binary("sub", [](Number a, Number b) { return a - b; });
  add_binary("mul", [](Number a, Number b) { return a * b; });
  add_binary("eq", [](Number a, Number b) { return a == b; });
  add_binary("ne", [](Number a, Number b) { return a != b; });
  return true;
}();
OP("aten::div.complex").impl([](const Value& a, const Value& b) -> Value {
  check(number_of(b) != 0.0, "complex division by zero");
  return number_of(a) / number_of(b);
});

// Functions of one complex number, as in std.
#define FUNCTION(NAME) \
  OP("aten::" #NAME ".complex").impl([](const Value& a) -> Value { return std::NAME(number_of(a)); })
FUNCTION(exp);
FUNCTION(log);
FUNCTION(log10);
FUNCTION(sqrt);
FUNCTION(sin);
FUNCTION(cos);
FUNCTION(tan);
FUNCTION(asin);
FUNCTION(acos);
FUNCTION(atan);
FUNCTION(sinh);
FUNCTION(cosh);
FUNCTION(tanh);
FUNCTION(asinh);
FUNCTION(acosh);
FUNCTION(atanh);
#undef FUNCTION
OP("aten::angle.complex").impl([](const Value& a) { return std::arg(number_of(a)); });
OP("aten::angle.int").impl([](int64_t a) { return std::arg(static_cast<double>(a)); });
OP("aten::angle.float").impl([](double a) { return std::isnan(a) ? a : std::arg(a); });
OP("aten::isnan.complex").impl([](const Value& a) {
  return std::isnan(number_of(a).real()) || std::isnan(number_of(a).imag());
});
OP("aten::isinf.complex").impl([](const Value& a) {
  return std::isinf(number_of(a).real()) || std::isinf(number_of(a).imag());
});
OP("aten::isfinite.complex").impl([](const Value& a) {
  return std::isfinite(number_of(a).real()) && std::isfinite(number_of(a).imag());
});
OP("aten::pow.complex").impl([](const Value& a, const Value& b) -> Value {
  return std::pow(number_of(a), number_of(b));
});
OP("aten::pow.complex_float").impl([](const Value& a, double b) -> Value { return std::pow(number_of(a), b); });
OP("aten::pow.float_complex").impl([](double a, const Value& b) -> Value { return std::pow(a, number_of(b)); });
OP("aten::sum.complex").impl([](const ops::List& list) -> Value {
  Number sum = 0;
  for (const Value& item : list->items) sum += number_of(item);
  return sum;
});
OP("aten::neg.complex").impl([](const Value& a) -> Value { return -number_of(a); });
OP("prim::abs.complex").impl([](const Value& a) { return std::abs(number_of(a)); });

#define MADE_OF(OVERLOAD)                                                          \
  OP("aten::Complex." OVERLOAD).impl([](const Value& x, const Value& y) -> Value { \
    return Number(x.to_scalar().to_double(), y.to_scalar().to_double());           \
  })
MADE_OF("int_int");
MADE_OF("int_float");
MADE_OF("float_int");
MADE_OF("float_float");
MADE_OF("bool_bool");
MADE_OF("bool_int");
MADE_OF("bool_float");
MADE_OF("int_bool");
MADE_OF("float_bool");
#undef MADE_OF
OP("aten::Complex.Scalar").impl([](const Value& a) -> Value { return number_of(a); });

}  // namespace
}  // namespace tensord::kernels
