#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/ops/op.h"
#include "core/tensor/tensor.h"
#include "kernels/pointwise_formula.h"

// Elementwise operators: out[i] = formula(a[i], b[i], c[i]; p0 … p2) after broadcasting.
// Formulas are lines of kernels/pointwise_*.def; this header is what the registration
// (pointwise.cpp, pointwise_special.cpp), the CPU loops (pointwise_cpu.cpp and the rows of
// pointwise_*_cpu.cpp) and the CUDA loops (pointwise_cuda.cu) share.
namespace tensord::kernels {

// How the dtype of computation and result follow from the operands' dtypes.
enum class TypeClass : uint8_t {
  kArith,        // PyTorch's promotion
  kArithNoBool,  // the same, bool refused
  kFloat,        // promotion, then integers become float32
  kFloatOnly,    // promotion, integers refused
  kInteger,      // promotion, floating point refused
  kCompare,      // computed in the promoted dtype, the result is bool
};

// Numbers p0 … p2 of a formula, in both forms so that integers keep all bits.
struct Numbers {
  double floats[3] = {0, 0, 0};
  int64_t ints[3] = {0, 0, 0};
  Numbers() = default;
  Numbers(std::initializer_list<ops::Scalar> values);
};

// A tensor, or a number that stands for a 0-d operand (promoted as PyTorch does numbers).
struct Operand {
  const Tensor* tensor = nullptr;
  ops::Scalar number = 0;
  Operand() = default;
  Operand(const Tensor& tensor) : tensor(&tensor) {}
  Operand(ops::Scalar number) : number(number) {}
};
using Operands = std::span<const Operand>;

// Promotion as torch.result_type: tensors with dimensions outrank 0-d tensors, which outrank
// numbers, unless the lower one is of a higher category (bool < int < float).
DType promote_operands(Operands operands);
// The dtype a formula is computed in. Throws Error{kInvalidArgument} where the class refuses.
DType compute_dtype(std::string_view op, TypeClass type_class, Operands operands);
// Broadcast sizes, and strides that keep the operands' memory order (dense inputs in one
// order keep it, else by PyTorch's rule for mixed strides).
ops::TensorMeta infer_pointwise(Operands operands, DType dtype);

struct PointwiseCall {
  Formula formula;
  DType compute;  // what operands are converted to; float16 and bfloat16 are computed in float
  std::array<Operand, 3> operands;
  size_t count = 0;
  Numbers numbers;
};
// Fills `out` (converting from the formula's result); out may be one of the operands.
void run_pointwise(const ops::KernelContext& context, const PointwiseCall& call, Tensor& out);
void run_pointwise_cpu(const PointwiseCall& call, Tensor& out);
// Defined when the build has CUDA.
void run_pointwise_cuda(const PointwiseCall& call, Tensor& out, void* stream);

// Calls KernelBuilder for each device this build has.
template <class F>
void add_pointwise_kernel(const char* op, F kernel) {
  ops::KernelBuilder(op, DeviceKind::kCPU, kernel);
#ifdef TENSORD_WITH_CUDA
  ops::KernelBuilder(op, DeviceKind::kCUDA, kernel);
#endif
}

// One loop over dense operands of the compute type: float, double or int64; unused operands
// must point to readable memory. Comparisons write bool, the others the compute type.
using RowFn = void (*)(void* out, const void* a, const void* b, const void* c, const Numbers& numbers, int64_t count);
struct FormulaRows {
  RowFn f32 = nullptr, f64 = nullptr, i64 = nullptr;
  bool writes_bool = false;
};
void fill_arith_rows(FormulaRows* rows);
void fill_math_rows(FormulaRows* rows);
void fill_activation_rows(FormulaRows* rows);

// Conversion of up to kTile elements between any dtype and a compute type.
inline constexpr int64_t kTile = 512;
// `step` in elements of the source; `to` is dense.
void load_tile(DType from, const void* source, int64_t step, DType compute, void* to, int64_t count);
void store_tile(DType compute, const void* from, DType to, void* target, int64_t step, int64_t count);

}  // namespace tensord::kernels
