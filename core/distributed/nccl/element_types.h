#pragma once

#include <string>

#include "core/distributed/group/backend.h"
#include "core/distributed/nccl/nccl_api.h"

namespace tensord::distributed {

// Elements of a reduction in NCCL's types: a complex element is two reals.
struct NcclElements {
  NcclType type;
  size_t count;
};
NcclElements nccl_elements(DType dtype, size_t count);

// Except for premul_sum, whose op is created for a communicator.
NcclOp nccl_op(ReduceOp op, DType dtype);

// The factor of premul_sum as an element of the type.
struct NcclScalar {
  alignas(8) std::byte bytes[8];
};
NcclScalar nccl_scalar(NcclType type, double factor);

// Throws Error{kUnimplemented} that names operation, op and dtype if NCCL does not support them.
void check_nccl_reduction(const std::string& operation, ReduceOp op, DType dtype);

}  // namespace tensord::distributed
