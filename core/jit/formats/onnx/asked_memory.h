#pragma once

#include <cstdint>

#include "core/jit/formats/onnx/proto.h"

namespace tensord::jit::onnx {

// Bytes of the tensors that a model has to be given memory for because its file does not hold them as they are: sparse
// ones made dense, and external ones that are copied (all where `copies`, else those that do not lie aligned), which
// may name the same bytes of a file again and again. Each counts once, since TensorReader makes it once. UINT64_MAX
// where the sum is larger.
uint64_t asked_bytes(const ModelProto& model, bool copies);

}  // namespace tensord::jit::onnx
