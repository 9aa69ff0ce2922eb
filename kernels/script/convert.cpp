#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "core/ops/op.h"
#include "kernels/pointwise/scalar_math.h"
#include "kernels/script/value_text.h"

// int(), float(), bool(), str() and the numbers of Python's math module.
namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::Value;

int64_t parse_int(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  check(end != text.c_str() && end == text.c_str() + text.size() && errno == 0,
        "invalid literal for int() with base 10: '", text, "'");
  return value;
}

double parse_float(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  check(errno != ERANGE, "could not convert string to float: '", text, "': out of range");
  check(end != text.c_str() && end == text.c_str() + text.size(), "could not convert string to float: '", text, "'");
  return value;
}

std::string in_base(int64_t value, const char* prefix, unsigned base) {
  uint64_t rest = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string digits;
  do {
    digits.push_back("0123456789abcdef"[rest % base]);
    rest /= base;
  } while (rest != 0);
  std::reverse(digits.begin(), digits.end());
  return (value < 0 ? "-" : "") + std::string(prefix) + digits;
}

OP("aten::Int.bool").impl([](bool a) { return int64_t{a}; });
OP("aten::Int.float").impl([](double a) { return float_to_int(a); });
OP("aten::Int.Scalar").impl([](const Scalar& a) { return a.is_float() ? float_to_int(a.to_double()) : a.to_int(); });
OP("aten::Int.str").impl(parse_int);
OP("aten::Float.Scalar").impl([](const Scalar& a) { return a.to_double(); });
OP("aten::Float.int").impl([](int64_t a) { return static_cast<double>(a); });
OP("aten::Float.bool").impl([](bool a) { return a ? 1.0 : 0.0; });
OP("aten::Float.str").impl(parse_float);
OP("aten::Bool.int").impl([](int64_t a) { return a != 0; });
OP("aten::Bool.float").impl([](double a) { return a != 0; });
OP("aten::str").impl([](const Value& value) { return value_text(value); });
OP("aten::hex").impl([](int64_t i) { return in_base(i, "0x", 16); });
OP("aten::oct").impl([](int64_t i) { return in_base(i, "0o", 8); });
OP("aten::bin").impl([](int64_t i) { return in_base(i, "0b", 2); });
// The value that libtorch gives, if both are built with libstdc++. It hashes the addresses of tensors and containers.
OP("aten::hash.generic").impl([](const Value& value) {
  size_t hash = 0;
  if (value.is_bool())
    hash = std::hash<bool>()(value.to_bool());
  else if (value.is_int())
    hash = std::hash<int64_t>()(value.to_int());
  else if (value.is_float())
    hash = std::hash<double>()(value.to_float());
  else if (value.is_string())
    hash = std::hash<std::string>()(value.to_string());
  else if (!value.is_none())
    fail(ErrorCode::kUnimplemented, "of a value of type ", ops::type_of(value)->str(), " is not supported");
  return static_cast<int64_t>(hash);
});

// floor and ceil return ints; round (half to even) returns a float. libtorch takes the floor of an int through a float.
#define ROUNDING(NAME, FUNCTION, OF_INT)                                               \
  OP("aten::" NAME ".int").impl([](int64_t a) { return OF_INT(a); });                  \
  OP("aten::" NAME ".float").impl([](double a) { return whole_number(FUNCTION(a)); }); \
  OP("aten::" NAME ".Scalar").impl([](const Scalar& a) {                               \
    return a.is_float() ? whole_number(FUNCTION(a.to_double())) : OF_INT(a.to_int());  \
  })
ROUNDING("floor", std::floor, [](int64_t a) { return float_to_int(static_cast<double>(a)); });
ROUNDING("ceil", std::ceil, [](int64_t a) { return a; });

#define FLOAT_FUNCTION(NAME, EXPRESSION)                                          \
  OP("aten::" NAME ".int").impl([](int64_t number) -> double {                    \
    const double a = static_cast<double>(number);                                 \
    return EXPRESSION;                                                            \
  });                                                                             \
  OP("aten::" NAME ".float").impl([](double a) -> double { return EXPRESSION; }); \
  OP("aten::" NAME ".Scalar").impl([](const Scalar& number) -> Value {            \
    const double a = number.to_double();                                          \
    return Value(static_cast<double>(EXPRESSION));                                \
  })
FLOAT_FUNCTION("round", std::nearbyint(a));
FLOAT_FUNCTION("sqrt", std::sqrt(a));
FLOAT_FUNCTION("exp", std::exp(a));
FLOAT_FUNCTION("expm1", std::expm1(a));
FLOAT_FUNCTION("log", std::log(a));
FLOAT_FUNCTION("log1p", std::log1p(a));
FLOAT_FUNCTION("log2", std::log2(a));
FLOAT_FUNCTION("log10", std::log10(a));
FLOAT_FUNCTION("sin", std::sin(a));
FLOAT_FUNCTION("cos", std::cos(a));
FLOAT_FUNCTION("tan", std::tan(a));
FLOAT_FUNCTION("asin", std::asin(a));
FLOAT_FUNCTION("acos", std::acos(a));
FLOAT_FUNCTION("atan", std::atan(a));
FLOAT_FUNCTION("sinh", std::sinh(a));
FLOAT_FUNCTION("cosh", std::cosh(a));
FLOAT_FUNCTION("tanh", std::tanh(a));
FLOAT_FUNCTION("asinh", std::asinh(a));
FLOAT_FUNCTION("acosh", std::acosh(a));
FLOAT_FUNCTION("atanh", std::atanh(a));
FLOAT_FUNCTION("erf", std::erf(a));
FLOAT_FUNCTION("erfc", std::erfc(a));
FLOAT_FUNCTION("gamma", std::tgamma(a));
FLOAT_FUNCTION("lgamma", std::lgamma(a));
FLOAT_FUNCTION("fabs", std::fabs(a));
FLOAT_FUNCTION("degrees", a * 180.0 / M_PI);
FLOAT_FUNCTION("radians", a*(M_PI / 180.0));

#define MATH2(NAME, INTS, FLOATS, EXPRESSION)                                                 \
  OP("aten::" NAME "." INTS).impl([](int64_t m, int64_t n) -> double {                        \
    const double a = static_cast<double>(m);                                                  \
    const double b = static_cast<double>(n);                                                  \
    return EXPRESSION;                                                                        \
  });                                                                                         \
  OP("aten::" NAME "." FLOATS).impl([](double a, double b) -> double { return EXPRESSION; }); \
  OP("aten::" NAME ".int_float").impl([](int64_t m, double b) -> double {                     \
    const double a = static_cast<double>(m);                                                  \
    return EXPRESSION;                                                                        \
  });                                                                                         \
  OP("aten::" NAME ".float_int").impl([](double a, int64_t n) -> double {                     \
    const double b = static_cast<double>(n);                                                  \
    return EXPRESSION;                                                                        \
  })
MATH2("log", "int_int", "float_float", std::log(a) / std::log(b));
MATH2("fmod", "int", "float", std::fmod(a, b));
MATH2("atan2", "int", "float", std::atan2(a, b));
MATH2("copysign", "int", "float", std::copysign(a, b));
MATH2("mathremainder", "int", "float", std::remainder(a, b));

OP("aten::isnan.float").impl([](double a) { return std::isnan(a); });
OP("aten::isinf.float").impl([](double a) { return std::isinf(a); });
OP("aten::isfinite.float").impl([](double a) { return std::isfinite(a); });
OP("aten::ldexp").impl([](double x, int64_t i) {
  return std::ldexp(x, static_cast<int>(i));  // libtorch truncates to 32 bits
});
OP("aten::frexp").impl([](double a) {
  int exponent = 0;
  const double mantissa = std::frexp(a, &exponent);
  return std::tuple(mantissa, static_cast<int64_t>(exponent));
});
OP("aten::modf").impl([](double a) {
  double whole = 0;
  const double fraction = std::modf(a, &whole);
  return std::tuple(fraction, whole);
});
OP("aten::gcd.int").impl([](int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = b == -1 ? 0 : a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? wrap_negate(a) : a;
});
OP("aten::factorial.int").impl([](int64_t a) {
  check(a >= 0, "factorial() not defined for negative values");
  int64_t out = 1;
  for (int64_t i = 2; i <= std::min<int64_t>(a, 66); ++i) out = wrap_multiply(out, i);
  return out;  // from 66 on, 64 bits hold none of its digits
});

// Reductions of lists of numbers.
#define LIST_TEST(TYPE, CPP)                                                             \
  OP("aten::any." TYPE).impl([](const std::vector<CPP>& values) {                        \
    return std::any_of(values.begin(), values.end(), [](CPP v) { return v != CPP(0); }); \
  });                                                                                    \
  OP("aten::all." TYPE).impl([](const std::vector<CPP>& values) {                        \
    return std::all_of(values.begin(), values.end(), [](CPP v) { return v != CPP(0); }); \
  })
LIST_TEST("int", int64_t);
LIST_TEST("float", double);
LIST_TEST("bool", bool);
OP("aten::any.str").impl([](const std::vector<std::string>& values) {
  return std::any_of(values.begin(), values.end(), [](const std::string& v) { return !v.empty(); });
});
OP("aten::sum.int").impl([](const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (int64_t v : values) sum = wrap_add(sum, v);
  return sum;
});
OP("aten::sum.float").impl([](const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum;
});
OP("aten::sum.bool").impl([](const std::vector<bool>& values) {
  return static_cast<int64_t>(std::count(values.begin(), values.end(), true));
});

template <class T, bool kMax>
T extreme(const std::vector<T>& values) {
  check(!values.empty(), kMax ? "max" : "min", "() arg is an empty sequence");
  T best = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    const T v = values[i];
    if (kMax ? v > best : v < best) best = v;
  }
  return best;
}
OP("prim::max.self_int").impl(extreme<int64_t, true>);
OP("prim::min.self_int").impl(extreme<int64_t, false>);
OP("prim::max.self_float").impl(extreme<double, true>);
OP("prim::min.self_float").impl(extreme<double, false>);
OP("prim::max.self_bool").impl(extreme<bool, true>);
OP("prim::min.self_bool").impl(extreme<bool, false>);
// Decided by the first items that differ, where NaN differs from everything; else by the lengths.
template <class T>
bool is_list_less(const std::vector<T>& x, const std::vector<T>& y) {
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const T a = x[i], b = y[i];
    if (a != b) return a < b;
  }
  return x.size() < y.size();
}
template <class T, bool kMax>
ops::List larger_list(const ops::List& a, const ops::List& b) {
  const auto x = ops::Unbox<std::vector<T>>::get(Value(a)), y = ops::Unbox<std::vector<T>>::get(Value(b));
  return (kMax ? is_list_less(x, y) : is_list_less(y, x)) ? b : a;
}
OP("prim::max.int_list").impl(larger_list<int64_t, true>);
OP("prim::min.int_list").impl(larger_list<int64_t, false>);
OP("prim::max.float_list").impl(larger_list<double, true>);
OP("prim::min.float_list").impl(larger_list<double, false>);
OP("prim::max.bool_list").impl(larger_list<bool, true>);
OP("prim::min.bool_list").impl(larger_list<bool, false>);
OP("aten::_infer_size").impl([](const ops::IntList& a, const ops::IntList& b) { return broadcast_sizes(a, b); });

}  // namespace
}  // namespace tensord::kernels
