#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "server/executor/model/datatype.h"

namespace tensord::server {

// The datatype of the tensor that holds an input of this type. Tensors have no unsigned elements wider than 8 bits:
// such inputs are widened to the next signed type, UINT64 to INT64.
inline DataType tensor_datatype(DataType datatype) {
  switch (datatype) {
    case DataType::kUint16: return DataType::kInt32;
    case DataType::kUint32:
    case DataType::kUint64: return DataType::kInt64;
    default: return datatype;
  }
}

inline bool is_widened_unsigned(DataType datatype) { return tensor_datatype(datatype) != datatype; }

// A tensor whose elements are read in their wire type from `wire_bytes`, inside its own memory; widen() converts them.
// REQUIRES: is_widened_unsigned(datatype).
struct WidenedTensor {
  Tensor tensor;
  char* wire_bytes = nullptr;
};
WidenedTensor make_widened_tensor(DataType datatype, const Dims& shape);
// Throws Error{kInvalidArgument} naming `what` for a value that the signed type cannot hold.
void widen(const WidenedTensor& wide, DataType datatype, const std::string& what);
// Appends the elements in their wire type. REQUIRES: the tensor is contiguous and was made by widen().
void append_narrowed(const Tensor& tensor, DataType datatype, std::string& out);

}  // namespace tensord::server
