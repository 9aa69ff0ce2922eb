// Complex numbers of scripts: made of two real ones, arithmetic, comparisons.
#include <cmath>
#include <complex>

#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Number = std::complex<double>;

Number number_of(const Value& value) { return value.to_complex(); }

// Of two complex numbers, and of one with an int or a float on either side.
template <class F>
void add_binary(const char* name, const char* result, F f) {
  const auto add = [&](const char* overload, const char* a, const char* b) {
    ops::OpBuilder(concat("aten::", name, ".", overload, "(", a, " a, ", b, " b) -> ", result).c_str(), __FILE__,
                   __LINE__)
        .impl([f](const Value& x, const Value& y) -> Value { return f(number_of(x), number_of(y)); });
  };
  add("complex", "complex", "complex");
  for (const char* other : {"int", "float"}) {
    add(concat("complex_", other).c_str(), "complex", other);
    add(concat(other, "_complex").c_str(), other, "complex");
  }
}
[[maybe_unused]] const bool complex_registered = [] {
  add_binary("add", "complex", [](Number a, Number b) { return a + b; });
  add_binary("sub", "complex", [](Number a, Number b) { return a - b; });
  add_binary("mul", "complex", [](Number a, Number b) { return a * b; });
  add_binary("eq", "bool", [](Number a, Number b) { return a == b; });
  add_binary("ne", "bool", [](Number a, Number b) { return a != b; });
  return true;
}();
OP("aten::div.complex(complex a, complex b) -> complex").impl([](const Value& a, const Value& b) -> Value {
  check(number_of(b) != 0.0, "complex division by zero");
  return number_of(a) / number_of(b);
});

// Of one complex number, as std has them.
#define FUNCTION(NAME)                                                                   \
  OP("aten::" #NAME ".complex(complex a) -> complex").impl([](const Value& a) -> Value { \
    return std::NAME(number_of(a));                                                      \
  })
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
OP("aten::angle.complex(complex a) -> float").impl([](const Value& a) { return std::arg(number_of(a)); });
OP("aten::angle.int(int a) -> float").impl([](int64_t a) { return std::arg(static_cast<double>(a)); });
OP("aten::angle.float(float a) -> float").impl([](double a) { return std::isnan(a) ? a : std::arg(a); });
OP("aten::isnan.complex(complex a) -> bool").impl([](const Value& a) {
  return std::isnan(number_of(a).real()) || std::isnan(number_of(a).imag());
});
OP("aten::isinf.complex(complex a) -> bool").impl([](const Value& a) {
  return std::isinf(number_of(a).real()) || std::isinf(number_of(a).imag());
});
OP("aten::isfinite.complex(complex a) -> bool").impl([](const Value& a) {
  return std::isfinite(number_of(a).real()) && std::isfinite(number_of(a).imag());
});
OP("aten::pow.complex(complex a, complex b) -> complex").impl([](const Value& a, const Value& b) -> Value {
  return std::pow(number_of(a), number_of(b));
});
OP("aten::pow.complex_float(complex a, float b) -> complex").impl([](const Value& a, double b) -> Value {
  return std::pow(number_of(a), b);
});
OP("aten::pow.float_complex(float a, complex b) -> complex").impl([](double a, const Value& b) -> Value {
  return std::pow(a, number_of(b));
});
OP("aten::sum.complex(complex[] self) -> complex").impl([](const ops::List& list) -> Value {
  Number sum = 0;
  for (const Value& item : list->items) sum += number_of(item);
  return sum;
});
OP("aten::neg.complex(complex a) -> complex").impl([](const Value& a) -> Value { return -number_of(a); });
OP("prim::abs.complex(complex a) -> float").impl([](const Value& a) { return std::abs(number_of(a)); });

#define MADE_OF(OVERLOAD, A, B)                                                                                    \
  OP("aten::Complex." OVERLOAD "(" A " x, " B " y) -> complex").impl([](const Value& x, const Value& y) -> Value { \
    return Number(x.to_scalar().to_double(), y.to_scalar().to_double());                                           \
  })
MADE_OF("int_int", "int", "int");
MADE_OF("int_float", "int", "float");
MADE_OF("float_int", "float", "int");
MADE_OF("float_float", "float", "float");
MADE_OF("bool_bool", "bool", "bool");
MADE_OF("bool_int", "bool", "int");
MADE_OF("bool_float", "bool", "float");
MADE_OF("int_bool", "int", "bool");
MADE_OF("float_bool", "float", "bool");
#undef MADE_OF
OP("aten::Complex.Scalar(Scalar a) -> complex").impl([](const Value& a) -> Value { return number_of(a); });

}  // namespace
}  // namespace tensord::kernels
