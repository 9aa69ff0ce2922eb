#pragma once

#include "core/tensor/tensor.h"
#include "server/executor/model/datatype.h"
#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

// What a text takes beside its bytes as an element of an input and of a script's list.
inline constexpr uint64_t kTextBytes = 160;

// Reads typed contents (InferTensorContents) of `count` elements, packed or not, spread over
// any number of parts. `what` names the input and model in messages. Throws
// Error{kInvalidArgument} when there are more or fewer elements, or the datatype has no slot.
Tensor decode_typed_contents(std::span<const WireReader> contents, DataType datatype, std::span<const int64_t> shape,
                             int64_t count, const std::string& what);
std::vector<std::string> decode_typed_strings(std::span<const WireReader> contents, int64_t count,
                                              const std::string& what);

// Reads raw BYTES elements: a 4-byte little-endian length, then the bytes.
std::vector<std::string> decode_raw_strings(WireReader raw, int64_t count, const std::string& what);
// The same the other way.
void append_raw_strings(std::string& out, const std::vector<std::string>& strings);
uint64_t raw_strings_bytes(const std::vector<std::string>& strings);

}  // namespace tensord::server
