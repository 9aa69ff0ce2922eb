#include "core/distributed/nccl/element_types.h"

#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/tensor/half.h"

namespace tensord::distributed {
namespace {

using Kind = ReduceOp::Kind;

std::optional<NcclType> find_type(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return NcclType::kInt8;
    case DType::kUInt8:
    case DType::kBool: return NcclType::kUint8;
    case DType::kInt32: return NcclType::kInt32;
    case DType::kInt64: return NcclType::kInt64;
    case DType::kFloat16: return NcclType::kFloat16;
    case DType::kBFloat16: return NcclType::kBfloat16;
    case DType::kFloat32:
    case DType::kComplex64: return NcclType::kFloat32;
    case DType::kFloat64:
    case DType::kComplex128: return NcclType::kFloat64;
    default: return std::nullopt;
  }
}

template <class T>
NcclScalar scalar_of(T value) {
  static_assert(sizeof(T) <= sizeof(NcclScalar));
  NcclScalar scalar{};
  std::memcpy(scalar.bytes, &value, sizeof value);
  return scalar;
}

}  // namespace

NcclElements nccl_elements(DType dtype, size_t count) {
  const auto type = find_type(dtype);
  check_internal(type.has_value(), "nccl: no type for ", name_of(dtype));
  return {*type, is_complex(dtype) ? 2 * count : count};
}

NcclOp nccl_op(ReduceOp op, DType dtype) {
  const bool is_bool = dtype == DType::kBool;
  switch (op.kind) {
    case Kind::kSum: return is_bool ? NcclOp::kMax : NcclOp::kSum;
    case Kind::kProduct: return is_bool ? NcclOp::kMin : NcclOp::kProd;
    case Kind::kAvg: return NcclOp::kAvg;
    case Kind::kMin: return NcclOp::kMin;
    case Kind::kMax: return NcclOp::kMax;
    default: fail(ErrorCode::kInternal, "nccl: no operation for ", to_string(op));
  }
}

NcclScalar nccl_scalar(NcclType type, double factor) {
  switch (type) {
    case NcclType::kFloat16: return scalar_of(Half(static_cast<float>(factor)));
    case NcclType::kBfloat16: return scalar_of(BFloat16(static_cast<float>(factor)));
    case NcclType::kFloat32: return scalar_of(static_cast<float>(factor));
    case NcclType::kFloat64: return scalar_of(factor);
    default: fail(ErrorCode::kInternal, "nccl: a factor for integers");
  }
}

void check_nccl_reduction(const std::string& operation, ReduceOp op, DType dtype) {
  const bool is_bits = op.kind == Kind::kBand || op.kind == Kind::kBor || op.kind == Kind::kBxor;
  if (is_bits) fail(ErrorCode::kUnimplemented, operation, ": cannot use ", to_string(op), " with NCCL");
  if (!find_type(dtype)) {
    fail(ErrorCode::kUnimplemented, operation, ": NCCL does not reduce ", name_of(dtype), "; convert it first");
  }
  if (is_complex(dtype) && op.kind == Kind::kProduct) {
    fail(ErrorCode::kUnimplemented, operation, ": NCCL does not support product on complex tensors (", name_of(dtype),
         ")");
  }
}

}  // namespace tensord::distributed
