#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/jit/importers/onnx/proto.h"
#include "core/tensor/dtype.h"

namespace tensord::jit::onnx {

// What is known of a node's inputs, by position; nothing for omitted ones.
struct InputFacts {
  std::function<std::optional<int64_t>(size_t)> rank;
  std::function<std::optional<int64_t>(size_t)> length;  // of a vector
  std::function<std::optional<DType>(size_t)> dtype;
};

struct RankOfResult {
  int64_t rank = 0;
  DType dtype = DType::kFloat32;
};

// The rank of an output of a standard ONNX operator whose sizes depend on the request. Nullopt if the rank depends on
// it too.
std::optional<RankOfResult> rank_of_result(const NodeProto& node, size_t output, const InputFacts& inputs);

}  // namespace tensord::jit::onnx
