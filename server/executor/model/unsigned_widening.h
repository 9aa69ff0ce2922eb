#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "server/executor/model/datatype.h"

namespace tensord::server {

// No tensor has unsigned elements of more than 8 bits. Inputs of such types reach the model in the next wider signed
// type, those of UINT64 in INT64; this is the datatype of their tensors. Others are what they are.
inline DataType tensor_datatype(DataType datatype) {
  switch (datatype) {
    case DataType::kUint16: return DataType::kInt32;
    case DataType::kUint32:
    case DataType::kUint64: return DataType::kInt64;
    default: return datatype;
  }
}

inline bool is_widened_unsigned(DataType datatype) { return tensor_datatype(datatype) != datatype; }

// A tensor for elements of this type as they are on the wire, which begin at `wire_bytes`; widen() makes them the
// tensor's own. REQUIRES: is_widened_unsigned(datatype).
struct WidenedTensor {
  Tensor tensor;
  char* wire_bytes = nullptr;
};
WidenedTensor make_widened_tensor(DataType datatype, const Dims& shape);
// Throws Error{kInvalidArgument} for an element that no tensor can hold, naming `what`.
void widen(const WidenedTensor& wide, DataType datatype, const std::string& what);
// Adds the elements as they were on the wire. REQUIRES: the tensor is contiguous, and came from such ones.
void append_narrowed(const Tensor& tensor, DataType datatype, std::string& out);

}  // namespace tensord::server
