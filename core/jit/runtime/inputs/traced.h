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

// Facts tracked for one argument through a graph, for one assumed rank.

// The dtypes that requests can have.
inline constexpr DType kRequestDtypes[] = {DType::kBool,    DType::kUInt8,  DType::kInt8,    DType::kInt16,
                                           DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBFloat16,
                                           DType::kFloat32, DType::kFloat64};
inline constexpr size_t kRequestDtypeCount = std::size(kRequestDtypes);

// A dimension of a value: equal to one of the argument's dimensions, or of a known size; otherwise unknown.
struct Dim {
  int of_input = -1;
  int64_t size = -1;
  bool operator==(const Dim&) const = default;
};
using TracedShape = std::vector<Dim>;

// The dtype of a value for each dtype of the argument; nullopt if the run has failed before.
using TracedDtypes = std::array<std::optional<DType>, kRequestDtypeCount>;

// What is known of a value that depends on the argument.
struct Traced {
  bool is_traced = false;  // depends on the argument
  std::optional<TracedShape> shape;
  std::optional<TracedDtypes> dtypes;
  std::optional<int64_t> number;                               // for an int or bool
  std::optional<std::vector<std::optional<int64_t>>> numbers;  // for a list of ints
};

// An argument of a call: a constant or a value.
struct TracedOperand {
  const ops::Value* constant = nullptr;
  Traced traced;

  bool is_tensor_constant() const { return constant && constant->is_strided() && constant->to_tensor().defined(); }
  const Tensor& tensor() const { return constant->to_tensor(); }
  std::optional<int64_t> number() const;
  std::optional<std::vector<std::optional<int64_t>>> numbers() const;
};

// Facts that hold for every run that gets this far.
struct Facts {
  bool fails = false;             // no run succeeds
  std::set<DType> failing;        // nor with an argument of these dtypes
  std::map<int, int64_t> sizes;   // of the argument's dimensions
  std::set<DType> weight_dtypes;  // of the weights that it met
  bool is_without_batch = false;  // an operator treats it as a single sample
  bool is_complete = true;        // everything that its shape determines is known

  void require(const Dim& dim, int64_t size);
};

// Facts that hold after either of two branches.
Facts either(const Facts& a, const Facts& b);

// The result of a call (input_operators.cpp). Constraints on its operands are added to `facts`.
Traced trace_call(const ops::Op& op, std::span<const TracedOperand> operands, Facts& facts);

// The dtypes of a call's result according to the operator's own shape function, for operands of these shapes. Dtypes
// with which no run succeeds are added to `facts` (input_dtypes.cpp). Nullopt if unknown.
std::optional<TracedDtypes> trace_dtypes(const ops::Op& op, std::span<const TracedOperand> operands,
                                         std::span<const Dims> examples, Facts& facts);

}  // namespace tensord::jit
