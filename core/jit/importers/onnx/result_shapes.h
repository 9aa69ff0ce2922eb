#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/jit/importers/onnx/proto.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace tensord::jit::onnx {

// What is known of a node's inputs, by position; nothing for omitted ones.
struct InputFacts {
  std::function<std::optional<int64_t>(size_t)> rank;
  std::function<Dims(size_t)> sizes;                     // -1: unknown; empty if the rank is
  std::function<std::optional<int64_t>(size_t)> length;  // of a vector
  std::function<std::optional<DType>(size_t)> dtype;
};

struct ShapeOfResult {
  Dims sizes;  // -1: of the request
  DType dtype = DType::kFloat32;
};

// What the file says of the shape of an output of a standard ONNX operator whose sizes depend on the request. Nullopt
// if the rank depends on it too.
std::optional<ShapeOfResult> shape_of_result(const NodeProto& node, size_t output, const InputFacts& inputs);

}  // namespace tensord::jit::onnx
