#pragma once

#include "core/distributed/nccl/nccl_api.h"
#include "core/tensor/dtype.h"

namespace tensord::distributed::fake_nccl {

inline size_t size_of_type(NcclType type) {
  switch (type) {
    case NcclType::kInt8:
    case NcclType::kUint8: return 1;
    case NcclType::kFloat16:
    case NcclType::kBfloat16: return 2;
    case NcclType::kInt32:
    case NcclType::kFloat32: return 4;
    default: return 8;
  }
}
inline DType dtype_of_type(NcclType type) {
  switch (type) {
    case NcclType::kInt8: return DType::kInt8;
    case NcclType::kUint8: return DType::kUInt8;
    case NcclType::kInt32: return DType::kInt32;
    case NcclType::kInt64: return DType::kInt64;
    case NcclType::kFloat16: return DType::kFloat16;
    case NcclType::kBfloat16: return DType::kBFloat16;
    case NcclType::kFloat32: return DType::kFloat32;
    case NcclType::kFloat64: return DType::kFloat64;
  }
  return DType::kUInt8;
}

}  // namespace tensord::distributed::fake_nccl
