#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/value.h"
#include "core/tensor/dims.h"

namespace tensord::jit {

// What is followed of one argument through a graph, for one rank that it might have.

// The dtypes that a request may bring.
inline constexpr DType kRequestDtypes[] = {DType::kBool,    DType::kUInt8,  DType::kInt8,    DType::kInt16,
                                           DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBFloat16,
                                           DType::kFloat32, DType::kFloat64};
inline constexpr size_t kRequestDtypeCount = std::size(kRequestDtypes);

// A dimension of a value: of the same size as one of the argument's, or of a size of its own; unknown otherwise.
struct Dim {
  int of_input = -1;
  int64_t size = -1;
  bool operator==(const Dim&) const = default;
};
using TracedShape = std::vector<Dim>;

// The dtype of a value for each that the argument may have; nothing where the run has failed by then.
using TracedDtypes = std::array<std::optional<DType>, kRequestDtypeCount>;

// A value that hangs on the argument, as far as it is known.
struct Traced {
  bool is_traced = false;  // it comes from the argument
  std::optional<TracedShape> shape;
  std::optional<TracedDtypes> dtypes;
  std::optional<int64_t> number;                               // of an int or bool
  std::optional<std::vector<std::optional<int64_t>>> numbers;  // of a list of ints
};

// An argument of a call: a constant, or a value.
struct TracedOperand {
  const ops::Value* constant = nullptr;
  Traced traced;

  bool is_tensor_constant() const { return constant && constant->is_strided() && constant->to_tensor().defined(); }
  const Tensor& tensor() const { return constant->to_tensor(); }
  std::optional<int64_t> number() const;
  std::optional<std::vector<std::optional<int64_t>>> numbers() const;
};

// What holds of every run that comes as far as this.
struct Facts {
  bool fails = false;             // none does
  std::set<DType> failing;        // nor with an argument of these dtypes
  std::map<int, int64_t> sizes;   // of the argument's dimensions
  std::set<DType> weight_dtypes;  // of the weights that it met
  bool is_without_batch = false;  // an operator takes it as one sample
  bool is_complete = true;        // all that its shape decides is known

  void require(const Dim& dim, int64_t size);
};

// What holds after either of two.
Facts either(const Facts& a, const Facts& b);

// The results of a call (input_operators.cpp), and what it demands of its operands: added to `facts`.
Traced trace_call(const ops::Op& op, std::span<const TracedOperand> operands, Facts& facts);

// The dtypes of a call's result, by the operator's own shape rule, for operands of these sizes; what no run gets over
// is added to `facts` (input_dtypes.cpp). Nothing: not known.
std::optional<TracedDtypes> trace_dtypes(const ops::Op& op, std::span<const TracedOperand> operands,
                                         std::span<const Dims> examples, Facts& facts);

}  // namespace tensord::jit
