#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/ops/attributes/packed.h"
#include "core/tensor/tensor.h"
#include "kernels/pointwise/formula.h"

// Elementwise operators: out[i] = formula(a[i], b[i], c[i]; p0 … p2) after broadcasting.
// Formulas are lines of the tables kernels/pointwise/*.def. The registration (pointwise.cpp, special.cpp), the CPU
// loops (pointwise_cpu.cpp, *_cpu.cpp) and what runs CUDA's kernels (kernels/cuda/pointwise_cuda.cpp) share this.
namespace tensord::kernels {

// How the dtype of computation and result follow from the operands' dtypes.
enum class TypeClass : uint8_t {
  kArith,           // PyTorch's promotion
  kArithNoBool,     // the same, bool refused
  kArithBoolToInt,  // the same, bool becomes int64: with a number as in pow(a, 2)
  kFloat,           // promotion, then integers become float32
  kFloatOnly,       // promotion, integers refused
  kInteger,         // promotion, floating point refused
  kIntegerNoBool,   // the same, bool refused
  kCompare,         // computed in the promoted dtype, the result is bool
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
  PointwiseCall() = default;
  PointwiseCall(Formula formula, DType compute, Operands operands, const Numbers& numbers = {});
  Formula formula = {};
  DType compute = DType::kFloat32;  // operands are converted to it; float16 and bfloat16 are computed in float
  std::array<Operand, 3> operands;
  size_t count = 0;
  Numbers numbers;
  std::array<Tensor, 3> owned;  // what own_operands kept

  // Null where the operand is a number.
  const Tensor* tensor(size_t k) const { return owned[k] ? &owned[k] : operands[k].tensor; }
  // Whether operand 1 must not be zero: integers are divided.
  bool checks_divisor() const;
  // Keeps the operands' tensors, for a call that outlives the handles it was made of.
  void own_operands();
};
// Bounds that are NaN make all elements NaN.
bool has_nan(std::initializer_list<ops::Scalar> numbers);
PointwiseCall nan_of(const Tensor& like, DType compute);
// Fills `out` (converting from the formula's result); out may be one of the operands.
void run_pointwise(const ops::KernelContext& context, const PointwiseCall& call, Tensor& out);
void run_pointwise_cpu(const PointwiseCall& call, Tensor& out);
void run_pointwise_cuda(const ops::KernelContext& context, const PointwiseCall& call, Tensor& out);

// From the arguments of an elementwise operator, tensors of which may be meta, what its kernel
// does; without operands when these arguments ask for more than a formula. Null for other operators.
// The call refers to the arguments.
using PointwiseMaker = std::function<PointwiseCall(std::span<const ops::Value> arguments)>;
// An operator's attribute.
struct Pointwise {
  PointwiseMaker make;
};
const PointwiseMaker* find_pointwise(const ops::Op& op);
// `op` is the name with its overload; also gives the operator its prepared form.
void add_pointwise_maker(const char* op, PointwiseMaker maker);
// The epilogue that this operator becomes when it is fused behind a packed operator: a unary formula with constants, or
// an addition. Tensors that are only known at a call are None in `arguments`; bit i of `tensors` is set when argument i
// is a tensor.
std::optional<ops::Epilogue> epilogue_of(const PointwiseMaker& make, uint64_t tensors,
                                         std::span<const ops::Value> arguments);

// Keeps the text of a schema or a name for the life of the program.
const char* keep_text(std::string text);

// Registers the kernels and the prepared form of an elementwise operator. `make` is a function
// of the schema's arguments that gives a PointwiseCall.
template <class F>
void add_pointwise_kernel(const char* op, F make) {
  using Arguments = typename ops::Signature<F>::Arguments;
  [&]<class... A>(std::type_identity<std::tuple<A...>>) {
    const auto kernel = [make](const ops::KernelContext& context, A... arguments, Tensor& out) {
      run_pointwise(context, make(arguments...), out);
    };
    const ops::ImplBuilder cpu(op, DeviceKind::kCPU, kernel), cuda(op, DeviceKind::kCUDA, kernel);
  }(std::type_identity<Arguments>());
  const PointwiseMaker maker = [make](std::span<const ops::Value> v) {
    return ops::detail::call_unboxed<F, Arguments>(make, v, std::make_index_sequence<std::tuple_size_v<Arguments>>());
  };
  add_pointwise_maker(op, maker);
  uint64_t tensors = 0, bit = 1;
  [&]<class... A>(std::type_identity<std::tuple<A...>>) {
    ((tensors |= std::is_same_v<std::remove_cvref_t<A>, Tensor> ? bit : 0, bit <<= 1), ...);
  }(std::type_identity<Arguments>());
  ops::set_attribute(op,
                     ops::EpilogueMaker{[=](std::span<const ops::Value> v) { return epilogue_of(maker, tensors, v); }});
}

// One loop over dense operands of the compute type: float, double or int64; unused operands
// must point to readable memory. Comparisons write bool, the others the compute type.
using RowFn = void (*)(void* out, const void* a, const void* b, const void* c, const Numbers& numbers, int64_t count);
struct FormulaRows {
  RowFn f32 = nullptr, f64 = nullptr, i64 = nullptr;
  // f32 with one element for the operands of a mask (1 a, 2 b, 4 c); null where there is none.
  std::array<RowFn, 8> f32_fixed{};
  bool writes_bool = false;
};
// Of the instruction set in use.
const FormulaRows& formula_rows(Formula formula);
// Roughly what an element takes on one thread, operands in the cache.
double formula_cost_ns(Formula formula, DType loop);
// float32, float64 or int64: what rows of this dtype compute in.
DType row_dtype(DType compute);
void fill_arith_rows(FormulaRows* rows);
void fill_math_rows(FormulaRows* rows);
void fill_activation_rows(FormulaRows* rows);
void fill_special_rows(FormulaRows* rows);

// Conversion of up to kTile elements between any dtype and a compute type.
inline constexpr int64_t kTile = 512;
// `step` in elements of the source; `to` is dense.
void load_tile(DType from, const void* source, int64_t step, DType compute, void* to, int64_t count);
void store_tile(DType compute, const void* from, DType to, void* target, int64_t step, int64_t count);

}  // namespace tensord::kernels
