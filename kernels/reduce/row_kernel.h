#pragma once

#include <array>
#include <functional>

#include "core/ops/op.h"
#include "kernels/reduce/reduce.h"

// What an operator does to each row along the last dimension: a softmax, a normalization, a sum.
namespace tensord::kernels {

struct RowKernel {
  // `in` is a dense row of `compute`, `extra` other dense rows of it or null. Writes one element of
  // `result`, or a row of them, which may be `in`.
  using Run = void (*)(const RowKernel& call, const void* in, const void* const* extra, void* out, int64_t length);
  Run run = nullptr;  // null: the arguments ask for something else
  DType compute = DType::kFloat32, result = DType::kFloat32;
  bool reduces = false;
  bool exact_input = false;             // rows that have to be converted first are not covered
  double cost_ns = 0.3;                 // of an element
  int64_t length = 0;                   // elements of a row; 0: the last dimension
  std::array<int, 2> extra = {-1, -1};  // arguments: the weight and the bias of a normalization
  // For `run`.
  const ReduceLoops* loops = nullptr;
  double scale = 1, root = 1, power = 0, eps = 0;
  bool is_log = false;
};

// From an operator's arguments, the first of which is the tensor; tensors may be meta.
using RowKernelMaker = std::function<RowKernel(std::span<const ops::Value> arguments)>;
// An operator's attribute.
struct RowKernelAttribute {
  RowKernelMaker make;
};
// Null for operators that do no such thing.
const RowKernelMaker* find_row_kernel(const ops::Op& op);
// `op` is the name with its overload; also gives the operator a prepared form where it has none
// of its own (`prepares`).
void add_row_kernel_maker(const char* op, RowKernelMaker maker, bool prepares = true);

}  // namespace tensord::kernels
