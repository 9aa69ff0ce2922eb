#pragma once

#include <string>

#include "core/distributed/group/backend.h"
#include "core/distributed/nccl/nccl_api.h"

namespace tensord::distributed {

// How NCCL sees elements that it reduces: a complex one is two.
struct NcclElements {
  NcclType type;
  size_t count;
};
NcclElements nccl_elements(DType dtype, size_t count);

// Not of premul_sum, whose op is made for a communicator.
NcclOp nccl_op(ReduceOp op, DType dtype);

// The factor of premul_sum as an element of the type.
struct NcclScalar {
  alignas(8) std::byte bytes[8];
};
NcclScalar nccl_scalar(NcclType type, double factor);

// Throws Error{kUnimplemented} that names operation, op and dtype where NCCL has none.
void check_nccl_reduction(const std::string& operation, ReduceOp op, DType dtype);

}  // namespace tensord::distributed
