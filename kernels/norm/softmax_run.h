#pragma once

#include <memory>

#include "core/ops/op.h"
#include "kernels/reduce/row_kernel.h"

namespace tensord::kernels {

// Softmax (or its logarithm) of a tensor along one dimension.
void run_softmax(const Tensor& in, int64_t dim, bool is_log, const Tensor& out);
std::unique_ptr<ops::PreparedCall> prepare_softmax(const ops::PrepareArgs& args, bool is_log);
// One row as a step of a tile program; empty where the dimension is not the last.
RowKernel softmax_call(const Tensor& in, int64_t dim, DType result, bool is_log);

}  // namespace tensord::kernels
