#include "kernels/pointwise/scalar_math.h"

#include "core/ops/attributes/exported.h"
#include "core/ops/op.h"

// Arithmetic and comparisons of Python numbers, by the overload names of PyTorch.
namespace tensord::kernels {

int64_t floor_divide(int64_t a, int64_t b) {
  check(b != 0, "division by 0");
  if (b == -1) return wrap_negate(a);
  const int64_t quotient = a / b;
  return (a % b != 0) && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t floor_remainder(int64_t a, int64_t b) {
  check(b != 0, "integer division or modulo by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

double floor_divide(double a, double b) { return std::floor(a / b); }

double floor_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && ((b < 0) != (rest < 0)) ? rest + b : rest;
}

namespace {

using ops::Scalar;
using ops::Value;

struct Add {
  static int64_t apply(int64_t a, int64_t b) { return wrap_add(a, b); }
  static double apply(double a, double b) { return a + b; }
};
struct Subtract {
  static int64_t apply(int64_t a, int64_t b) { return wrap_subtract(a, b); }
  static double apply(double a, double b) { return a - b; }
};
struct Multiply {
  static int64_t apply(int64_t a, int64_t b) { return wrap_multiply(a, b); }
  static double apply(double a, double b) { return a * b; }
};
struct FloorDivide {
  static int64_t apply(int64_t a, int64_t b) { return floor_divide(a, b); }
  static double apply(double a, double b) { return floor_divide(a, b); }
};
struct Remainder {
  // As in libtorch, the sum wraps near the ends of int's range, and is infinite or NaN near those of float's.
  static int64_t apply(int64_t a, int64_t b) {
    check(b != 0, "integer division or modulo by zero");
    return b == -1 ? 0 : wrap_add(b, a % b) % b;
  }
  static double apply(double a, double b) { return std::fmod(b + std::fmod(a, b), b); }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? a : b;  // for NaN the second, as in libtorch
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
// The result is a float even for ints.
struct Divide {
  static double apply(double a, double b) { return a / b; }
};
struct Power {
  static double apply(double a, double b) {
    check(a != 0 || !(b < 0), "0.0 cannot be raised to a negative power");
    return std::pow(a, b);
  }
};
struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};

template <class F>
auto on_ints(int64_t a, int64_t b) {
  return F::apply(a, b);
}
template <class F>
auto on_floats(double a, double b) {
  return F::apply(a, b);
}
template <class F>
auto on_int_float(int64_t a, double b) {
  return F::apply(static_cast<double>(a), b);
}
template <class F>
auto on_float_int(double a, int64_t b) {
  return F::apply(a, static_cast<double>(b));
}
template <class F>
Value on_scalars(const Scalar& a, const Scalar& b) {
  if (a.is_float() || b.is_float()) return F::apply(a.to_double(), b.to_double());
  return F::apply(a.to_int(), b.to_int());
}
template <class F>
auto on_ints_as_floats(int64_t a, int64_t b) {
  return F::apply(static_cast<double>(a), static_cast<double>(b));
}
template <class F>
double on_scalars_as_floats(const Scalar& a, const Scalar& b) {
  return F::apply(a.to_double(), b.to_double());
}

#define ARITHMETIC(NAME, F)                    \
  OP(NAME ".int").impl(on_ints<F>);            \
  OP(NAME ".float").impl(on_floats<F>);        \
  OP(NAME ".int_float").impl(on_int_float<F>); \
  OP(NAME ".float_int").impl(on_float_int<F>); \
  OP(NAME).impl(on_scalars<F>)
#define COMPARISON(NAME, F)                                                \
  OP(NAME ".int").impl(on_ints<F>).set<ops::ComparesNumbers>();            \
  OP(NAME ".float").impl(on_floats<F>).set<ops::ComparesNumbers>();        \
  OP(NAME ".int_float").impl(on_int_float<F>).set<ops::ComparesNumbers>(); \
  OP(NAME ".float_int").impl(on_float_int<F>).set<ops::ComparesNumbers>(); \
  OP(NAME).impl(on_scalars<F>).set<ops::ComparesNumbers>();                \
  OP(NAME ".str")                                                          \
      .impl([](const std::string& a, const std::string& b) {               \
        return F::apply(std::string_view(a), std::string_view(b));         \
      })                                                                   \
      .set<ops::ComparesNumbers>()
#define FLOAT_RESULT(NAME, F)                 \
  OP(NAME ".int").impl(on_ints_as_floats<F>); \
  OP(NAME ".float").impl(on_floats<F>)

ARITHMETIC("aten::add", Add);
ARITHMETIC("aten::sub", Subtract);
ARITHMETIC("aten::mul", Multiply);
ARITHMETIC("aten::floordiv", FloorDivide);
ARITHMETIC("aten::remainder", Remainder);
ARITHMETIC("prim::min", Minimum);
ARITHMETIC("prim::max", Maximum);
COMPARISON("aten::eq", Equal);
COMPARISON("aten::ne", NotEqual);
COMPARISON("aten::lt", Less);
COMPARISON("aten::le", LessEqual);
COMPARISON("aten::gt", Greater);
COMPARISON("aten::ge", GreaterEqual);
FLOAT_RESULT("aten::div", Divide);
OP("aten::div").impl(on_scalars_as_floats<Divide>);
FLOAT_RESULT("aten::pow", Power);
OP("aten::pow.int_float").impl(on_int_float<Power>);
OP("aten::pow.float_int").impl(on_float_int<Power>);
OP("aten::pow.Scalar_Scalar").impl(on_scalars_as_floats<Power>);

OP("aten::eq.bool").impl([](bool a, bool b) { return a == b; }).set<ops::ComparesNumbers>();
OP("aten::ne.bool").impl([](bool a, bool b) { return a != b; }).set<ops::ComparesNumbers>();
OP("aten::eq.device").impl([](Device a, Device b) { return a == b; }).set<ops::ComparesNumbers>();
OP("aten::ne.device").impl([](Device a, Device b) { return !(a == b); }).set<ops::ComparesNumbers>();

OP("aten::neg.int").impl([](int64_t a) { return wrap_negate(a); });
OP("aten::neg.float").impl([](double a) { return -a; });
OP("aten::neg.Scalar").impl([](const Scalar& a) -> Value {
  return a.is_float() ? Value(-a.to_double()) : Value(wrap_negate(a.to_int()));
});
OP("prim::abs.int").impl([](int64_t a) { return a < 0 ? wrap_negate(a) : a; });
OP("prim::abs.float").impl([](double a) { return std::abs(a); });
OP("prim::abs.Scalar").impl([](const Scalar& a) -> Value {
  if (a.is_float()) return std::abs(a.to_double());
  return a.to_int() < 0 ? wrap_negate(a.to_int()) : a.to_int();
});

OP("aten::__not__").impl([](bool a) { return !a; });
OP("aten::__and__.bool").impl([](bool a, bool b) { return a && b; });
OP("aten::__or__.bool").impl([](bool a, bool b) { return a || b; });
OP("aten::__xor__.bool").impl([](bool a, bool b) { return a != b; });
OP("aten::__and__.int").impl([](int64_t a, int64_t b) { return a & b; });
OP("aten::__or__.int").impl([](int64_t a, int64_t b) { return a | b; });
OP("aten::__xor__.int").impl([](int64_t a, int64_t b) { return a ^ b; });
OP("aten::__lshift__.int").impl([](int64_t a, int64_t b) {
  check(b >= 0, "negative shift count");
  return b > 63 ? int64_t{0} : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
});
OP("aten::__rshift__.int").impl([](int64_t a, int64_t b) {
  check(b >= 0, "negative shift count");
  return a >> std::min<int64_t>(b, 63);
});

OP("aten::__is__").impl([](const Value& a, const Value& b) { return a.is_same(b); });
OP("aten::__isnot__").impl([](const Value& a, const Value& b) { return !a.is_same(b); });
OP("aten::__range_length").impl([](int64_t low, int64_t high, int64_t step) -> int64_t {
  check(step != 0, "range() arg 3 must not be zero");
  // Unsigned, since the distance between any two ints fits there.
  const auto distance = [](int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  };
  if (step > 0 && low < high) return static_cast<int64_t>((distance(low, high) - 1) / static_cast<uint64_t>(step) + 1);
  if (step < 0 && low > high)
    return static_cast<int64_t>((distance(high, low) - 1) / (~static_cast<uint64_t>(step) + 1) + 1);
  return 0;
});
OP("aten::__derive_index").impl([](int64_t index, int64_t start, int64_t step) {
  return wrap_add(start, wrap_multiply(index, step));
});
OP("aten::divmod.int").impl([](int64_t a, int64_t b) {
  check(b != 0, "ZeroDivisionError: integer division or modulo by zero");
  return std::tuple(floor_divide(a, b), floor_remainder(a, b));
});
OP("aten::divmod.float").impl([](double a, double b) {
  check(b != 0, "ZeroDivisionError: float divmod()");
  const double rest = floor_remainder(a, b);
  return std::tuple((a - rest) / b, rest);
});
// libtorch converts both numbers to C's 32-bit int and float.
template <class A, class B>
std::tuple<double, double> divmod_of_two_types(A a, B b) {
  check(b != 0, "ZeroDivisionError: float divmod()");
  const auto quotient = static_cast<double>(whole_number(std::floor(a / b)));
  return {quotient, a - quotient * b};
}
OP("aten::divmod.int_float").impl([](int64_t a, double b) {
  return divmod_of_two_types(static_cast<int32_t>(a), static_cast<float>(b));
});
OP("aten::divmod.float_int").impl([](double a, int64_t b) {
  return divmod_of_two_types(static_cast<float>(a), static_cast<int32_t>(b));
});

}  // namespace
}  // namespace tensord::kernels
