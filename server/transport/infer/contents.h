#pragma once

#include "core/tensor/tensor.h"
#include "server/executor/model/datatype.h"
#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

// Overhead of a string as an element of an input and of a script's list.
inline constexpr uint64_t kTextBytes = 160;

// Decodes typed contents (InferTensorContents) of `count` elements, packed or not, in any number of parts. `what` names
// the input and model in errors. Throws Error{kInvalidArgument} if the number of elements differs, or the datatype has
// no field.
Tensor decode_typed_contents(std::span<const WireReader> contents, DataType datatype, std::span<const int64_t> shape,
                             int64_t count, const std::string& what);
std::vector<std::string> decode_typed_strings(std::span<const WireReader> contents, int64_t count,
                                              const std::string& what);

// Decodes raw BYTES elements: each is a 4-byte little-endian length followed by the bytes.
std::vector<std::string> decode_raw_strings(WireReader raw, int64_t count, const std::string& what);
// Encodes them.
void append_raw_strings(std::string& out, const std::vector<std::string>& strings);
uint64_t raw_strings_bytes(const std::vector<std::string>& strings);

}  // namespace tensord::server
