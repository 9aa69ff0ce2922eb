#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace tensord::jit {

class Method;

// What a graph makes certain of an argument that is a tensor, as the weights that it meets tell: what it says works as
// far as types, ranks and those sizes decide, and where it says a size or rank, no other works.
struct KnownInput {
  std::optional<DType> dtype;         // that of the weights; int64 of an embedding's indices, which may be int32 too
  std::optional<int> rank;            // with the batch, where an operator takes inputs with and without one
  std::map<int, int64_t> from_front;  // sizes of dimensions 0, 1 …
  std::map<int, int64_t> from_end;    // of dimensions -1, -2 …

  // -1: any size. Empty where this does not fit a tensor of so many dimensions.
  std::optional<Dims> shape_of_rank(int rank) const;
};

// One for each argument of the method; without entries for what is no Tensor. Models that were loaded unoptimized tell
// nothing.
std::vector<KnownInput> find_known_inputs(const Method& method);

}  // namespace tensord::jit
