#include "core/distributed/group/reduce_op.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "core/base/error.h"
#include "core/tensor/complex.h"

namespace tensord::distributed {
namespace {

using Kind = ReduceOp::Kind;

template <class T>
inline constexpr bool is_complex_type = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <class T>
inline constexpr bool is_integer_type = std::is_integral_v<T>;

// Integers wrap around, which the language defines for unsigned types only.
template <class T>
auto widened(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (is_integer_type<T>) {
    return static_cast<uint64_t>(value);
  } else {
    return static_cast<ComputeType<T>>(value);
  }
}

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return static_cast<T>(widened(a) + widened(b));
  }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else
      return static_cast<T>(widened(a) * widened(b));
  }
};
// NaN propagates: it compares unequal to itself.
struct Least {
  template <class T>
  static T of(T a, T b) {
    const auto x = static_cast<ComputeType<T>>(a), y = static_cast<ComputeType<T>>(b);
    return x < y || x != x ? a : b;
  }
};
struct Greatest {
  template <class T>
  static T of(T a, T b) {
    const auto x = static_cast<ComputeType<T>>(a), y = static_cast<ComputeType<T>>(b);
    return x > y || x != x ? a : b;
  }
};
struct And {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class T, class Fn>
void reduce_all(void* out, const void* a, const void* b, size_t count) {
  T* const result = static_cast<T*>(out);
  const T* const left = static_cast<const T*>(a);
  const T* const right = static_cast<const T*>(b);
#pragma omp simd
  for (size_t i = 0; i < count; ++i) result[i] = Fn::of(left[i], right[i]);
}

template <class Fn>
ReduceFunction for_reals(DType dtype) {
  return dispatch_all(dtype, "reduce", []<class T>() -> ReduceFunction { return reduce_all<T, Fn>; });
}
template <class Fn>
ReduceFunction for_any(DType dtype) {
  return dispatch_any(dtype, "reduce", []<class T>() -> ReduceFunction { return reduce_all<T, Fn>; });
}
template <class Fn>
ReduceFunction for_bits(DType dtype) {
  if (dtype == DType::kBool) return reduce_all<bool, Fn>;
  return dispatch_integral(dtype, "reduce", []<class T>() -> ReduceFunction { return reduce_all<T, Fn>; });
}

template <class T, class Fn>
void change_all(void* data, size_t count, const Fn& fn) {
  T* const elements = static_cast<T*>(data);
#pragma omp simd
  for (size_t i = 0; i < count; ++i) elements[i] = fn(elements[i]);
}

// Calls fn with the type in which a factor or divisor is applied to elements of the dtype, then with the element type.
template <class Fn>
void dispatch_scaled(DType dtype, const Fn& fn) {
  if (is_complex(dtype)) {
    dispatch_complex(dtype, "scale", [&]<class T>() { fn.template operator()<T, typename T::value_type>(); });
  } else {
    dispatch_floating(dtype, "scale", [&]<class T>() { fn.template operator()<T, ComputeType<T>>(); });
  }
}

void divide_elements(DType dtype, void* data, size_t count, double divisor) {
  dispatch_scaled(dtype, [&]<class T, class C>() {
    const C by = static_cast<C>(divisor);
    change_all<T>(data, count, [by](T value) {
      if constexpr (is_complex_type<T>)
        return value / by;
      else
        return static_cast<T>(static_cast<C>(value) / by);
    });
  });
}

const char* name_of_kind(Kind kind) {
  static constexpr const char* kNames[] = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

std::string to_string(ReduceOp op) {
  return op.kind == Kind::kPremulSum ? concat("premul_sum(", op.factor, ")") : name_of_kind(op.kind);
}

ReduceFunction reduce_function(const std::string& operation, ReduceOp op, DType dtype) {
  const bool is_floating_or_complex = is_floating(dtype) || is_complex(dtype);
  switch (op.kind) {
    case Kind::kSum: return for_any<Add>(dtype);
    case Kind::kProduct: return for_any<Multiply>(dtype);
    case Kind::kAvg:
    case Kind::kPremulSum:
      check(is_floating_or_complex, operation, ": cannot use ", to_string(op), " with ", name_of(dtype),
            ", expected a floating or complex dtype");
      return for_any<Add>(dtype);
    case Kind::kMin:
    case Kind::kMax:
      check(!is_complex(dtype), operation, ": cannot use ", to_string(op), " with ", name_of(dtype),
            ", which has no order");
      return op.kind == Kind::kMin ? for_reals<Least>(dtype) : for_reals<Greatest>(dtype);
    case Kind::kBand:
    case Kind::kBor:
    case Kind::kBxor:
      check(!is_floating_or_complex, operation, ": cannot use ", to_string(op), " with non-integral dtype ",
            name_of(dtype));
      if (op.kind == Kind::kBand) return for_bits<And>(dtype);
      return op.kind == Kind::kBor ? for_bits<Or>(dtype) : for_bits<Xor>(dtype);
  }
  fail(ErrorCode::kInvalidArgument, operation, ": no such reduction");
}

bool has_preparation(ReduceOp op) { return op.kind == Kind::kPremulSum; }

void prepare_elements(ReduceOp op, DType dtype, void* data, size_t count) {
  if (op.kind == Kind::kPremulSum) scale_elements(dtype, data, count, op.factor);
}

void finish_elements(ReduceOp op, DType dtype, void* data, size_t count, int world_size) {
  if (op.kind == Kind::kAvg) divide_elements(dtype, data, count, world_size);
}

void scale_elements(DType dtype, void* data, size_t count, double factor) {
  dispatch_scaled(dtype, [&]<class T, class C>() {
    const C by = static_cast<C>(factor);
    change_all<T>(data, count, [by](T value) {
      if constexpr (is_complex_type<T>)
        return value * by;
      else
        return static_cast<T>(static_cast<C>(value) * by);
    });
  });
}

}  // namespace tensord::distributed
