#pragma once

#include <array>
#include <type_traits>

#include "core/tensor/complex.h"
#include "core/tensor/loops.h"
#include "kernels/pointwise/pointwise.h"

// Loops over elements of complex tensors, with PyTorch's promotion, broadcasting and memory order.
namespace tensord::kernels::complex_loops {

template <class T>
using Real = typename T::value_type;

// Products and quotients without C's special cases for infinities, as in PyTorch.
template <class T>
T times(T a, T b) {
  return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}
// Smith's quotient: intermediate results do not overflow.
template <class T>
T over(T a, T b) {
  using R = Real<T>;
  const R c = b.real(), d = b.imag();
  const R abs_c = std::abs(c), abs_d = std::abs(d);
  if (abs_c >= abs_d) {
    if (abs_c == R(0) && abs_d == R(0)) return T(a.real() / abs_c, a.imag() / abs_d);
    const R ratio = d / c, scale = R(1) / (c + d * ratio);
    return T((a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale);
  }
  const R ratio = c / d, scale = R(1) / (c * ratio + d);
  return T((a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale);
}

// The operand as a tensor of `dtype`.
inline Tensor operand_as(const Operand& operand, DType dtype) {
  if (operand.tensor) return operand.tensor->to(dtype);
  const Tensor out = Tensor::empty({}, dtype);
  dispatch_complex(dtype, "a number", [&]<class T>() { *out.data<T>() = T(operand.number.to_complex()); });
  return out;
}

inline Tensor make_result(Operands operands, DType dtype) {
  const ops::TensorMeta meta = infer_pointwise(operands, dtype);
  const Dims strides = meta.strides.empty() ? contiguous_strides(meta.sizes) : meta.strides;
  for (const Operand& operand : operands) {
    if (operand.tensor && operand.tensor->is_meta())
      return Tensor::meta_strided(meta.sizes, strides, dtype, meta.device);
  }
  check_internal(meta.device.is_host(), "loops over complex numbers are the processor's");
  return Tensor::empty_strided(meta.sizes, strides, dtype);
}

// out[i] = f(operands[i] …), computed in complex `dtype`. The result is of f's type: complex, its real type, or bool.
template <size_t N, class F>
Tensor map(DType dtype, const std::array<Operand, N>& operands, F f) {
  return dispatch_complex(dtype, "an elementwise operator", [&]<class T>() {
    const auto call = [&]<size_t... I>(const std::array<const T*, N>& at, std::index_sequence<I...>) {
      return f(*at[I]...);
    };
    using R = decltype(call(std::array<const T*, N>(), std::make_index_sequence<N>()));
    Tensor out = make_result(operands, dtype_of<R>);
    if (out.is_meta() || out.numel() == 0) return out;
    std::array<Tensor, N> inputs;
    std::array<Dims, N + 1> strides;
    strides[0] = out.strides();
    std::array<const T*, N> data;
    for (size_t k = 0; k < N; ++k) {
      inputs[k] = operand_as(operands[k], dtype);
      strides[k + 1] = broadcast_strides(inputs[k].sizes(), inputs[k].strides(), out.sizes());
      data[k] = inputs[k].template data<T>();
    }
    R* target = out.data<R>();
    const LoopNest<N + 1> nest(out.sizes(), strides);
    nest.parallel_rows(
        4096, [&](const std::array<int64_t, N + 1>& offset, int64_t count, const std::array<int64_t, N + 1>& step) {
          std::array<const T*, N> at;
          for (size_t k = 0; k < N; ++k) at[k] = data[k] + offset[k + 1];
          R* to = target + offset[0];
          for (int64_t i = 0; i < count; ++i) {
            *to = call(at, std::make_index_sequence<N>());
            to += step[0];
            for (size_t k = 0; k < N; ++k) at[k] += step[k + 1];
          }
        });
    return out;
  });
}

template <class F>
Tensor map_one(const Tensor& x, F f) {
  return map(x.dtype(), std::array{Operand(x)}, f);
}
// Operands promoted together.
template <class F>
Tensor map_two(const Operand& a, const Operand& b, F f) {
  const std::array operands{a, b};
  return map(complex_dtype(promote_operands(operands)), operands, f);
}
template <class F>
Tensor map_three(const Operand& a, const Operand& b, const Operand& c, F f) {
  const std::array operands{a, b, c};
  return map(complex_dtype(promote_operands(operands)), operands, f);
}

}  // namespace tensord::kernels::complex_loops
