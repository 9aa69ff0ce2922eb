#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace tensord::jit::pt2 {

// Converts numbers of the schema (torch/_export/serde/schema.py), which differ from those that operators take. All
// functions throw Error{kUnimplemented} that starts with `where` and names what is not supported, and kDataLoss for an
// invalid number.
DType to_dtype(int64_t number, const std::string& where);
int64_t to_memory_format(int64_t number, const std::string& where);  // as operators take it
int64_t to_layout(int64_t number, const std::string& where);         // as operators take it

// The inverse: the schema's number of a dtype, and of a memory format as operators take it.
int64_t schema_number(DType dtype);
int64_t memory_format_number(int64_t memory_format);

inline constexpr int64_t kStridedLayout = 7;

}  // namespace tensord::jit::pt2
