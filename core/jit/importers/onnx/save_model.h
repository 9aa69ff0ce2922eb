#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "core/tensor/tensor.h"

namespace tensord::jit::onnx {

// Rewrites a serialized ModelProto with these tensors in place of the initializers of the same names, stored inside the
// file. Throws Error{kResourceExhausted} above protobuf's limit of 2 GB, otherwise as AtomicFile does.
void save_model(const std::string& path, std::span<const uint8_t> model,
                const std::map<std::string, Tensor>& initializers);

}  // namespace tensord::jit::onnx
