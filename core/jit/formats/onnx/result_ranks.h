#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/jit/formats/onnx/proto.h"
#include "core/tensor/dtype.h"

namespace tensord::jit::onnx {

// What is known of a node's inputs, by their place; nothing for those that are left out.
struct InputFacts {
  std::function<std::optional<int64_t>(size_t)> rank;
  std::function<std::optional<int64_t>(size_t)> length;  // of a vector
  std::function<std::optional<DType>(size_t)> dtype;
};

struct RankOfResult {
  int64_t rank = 0;
  DType dtype = DType::kFloat32;
};

// How many dimensions an output of one of ONNX's own operators has where its sizes hang on what requests bring: the
// standard says it of most. Nothing where that hangs on them too.
std::optional<RankOfResult> rank_of_result(const NodeProto& node, size_t output, const InputFacts& inputs);

}  // namespace tensord::jit::onnx
