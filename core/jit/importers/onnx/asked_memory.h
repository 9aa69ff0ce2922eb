#pragma once

#include <cstdint>

#include "core/jit/importers/onnx/proto.h"

namespace tensord::jit::onnx {

// Bytes that loading a model must allocate for tensors that its file does not hold as they are: sparse ones converted
// to dense, and external ones that are copied (all if `copies`, otherwise unaligned ones), which may refer to the same
// bytes of a file repeatedly. Each tensor counts once, because TensorReader reads it once. UINT64_MAX on overflow.
uint64_t asked_bytes(const ModelProto& model, bool copies);

}  // namespace tensord::jit::onnx
