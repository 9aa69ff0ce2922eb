#pragma once

#include "server/executor/datatype.h"

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

inline bool is_wide_unsigned(DataType datatype) { return tensor_datatype(datatype) != datatype; }

}  // namespace tensord::server
