#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "core/tensor/tensor.h"

namespace tensord::jit::onnx {

// Writes the bytes of a ModelProto again, with these tensors as its initializers of those names, inside of the file.
// Throws Error{kResourceExhausted} beyond the 2 GB that a message may have, else as AtomicFile does.
void save_model(const std::string& path, std::span<const uint8_t> model,
                const std::map<std::string, Tensor>& initializers);

}  // namespace tensord::jit::onnx
