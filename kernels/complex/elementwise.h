#pragma once

#include <array>
#include <type_traits>

#include "core/tensor/complex.h"
#include "core/tensor/loops.h"
#include "kernels/complex/formulas.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {

// On a CUDA device; `dtype` is what it is computed in.
void run_complex_cuda(ComplexFormula formula, DType dtype, Operands operands, const std::array<double, 3>& numbers,
                      const Tensor& out);

}  // namespace tensord::kernels

// Loops over elements of complex tensors, with PyTorch's promotion, broadcasting and memory order.
namespace tensord::kernels::complex_loops {

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
  check_internal(meta.device.is_host() || meta.device.kind == kCUDA, "there are no such loops over complex numbers");
  return Tensor::empty_strided(meta.sizes, strides, dtype, meta.device);
}

// out[i] = formula(operands[i] …), computed in complex `dtype`. The result is of the formula's type: complex, its real
// type, or bool.
template <ComplexFormula kFormula, size_t N>
Tensor map(DType dtype, const std::array<Operand, N>& operands, const std::array<double, 3>& numbers = {}) {
  return dispatch_complex(dtype, "an elementwise operator", [&]<class T>() {
    const auto call = [&]<size_t... I>(const std::array<const T*, N>& at, std::index_sequence<I...>) {
      const T values[3] = {*at[I]...};
      return FormulaOf<kFormula>::run(values[0], values[1], values[2], numbers.data());
    };
    using R = decltype(FormulaOf<kFormula>::run(T(), T(), T(), numbers.data()));
    Tensor out = make_result(operands, dtype_of<R>);
    if (out.is_meta() || out.numel() == 0) return out;
    if (out.device().kind == kCUDA) {
      run_complex_cuda(kFormula, dtype, operands, numbers, out);
      return out;
    }
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

template <ComplexFormula kFormula>
Tensor map_one(const Tensor& x) {
  return map<kFormula>(x.dtype(), std::array{Operand(x)});
}
// Operands promoted together.
template <ComplexFormula kFormula>
Tensor map_two(const Operand& a, const Operand& b, const std::array<double, 3>& numbers = {}) {
  const std::array operands{a, b};
  return map<kFormula>(complex_dtype(promote_operands(operands)), operands, numbers);
}

}  // namespace tensord::kernels::complex_loops
