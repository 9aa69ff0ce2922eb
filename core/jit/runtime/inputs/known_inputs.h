#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace tensord::jit {

class Method;

// What a graph implies about a tensor argument, through the weights that it meets: an input with these properties works
// as far as types, ranks and the given sizes matter, and no other size or rank works.
struct KnownInput {
  std::optional<DType> dtype;         // that of the weights; int64 for indices of an embedding, which may also be int32
  std::optional<int> rank;            // includes the batch if an operator accepts inputs with and without one
  std::map<int, int64_t> from_front;  // sizes of dimensions 0, 1 …
  std::map<int, int64_t> from_end;    // of dimensions -1, -2 …

  // -1 marks a dynamic size. Nullopt if the properties do not fit a tensor of this rank.
  std::optional<Dims> shape_of_rank(int rank) const;
};

// One entry per argument of the method; empty for arguments that are not tensors. Nothing is known of models that were
// loaded unoptimized.
std::vector<KnownInput> find_known_inputs(const Method& method);

// The same for the values inside of the method's result (result_values), if its arguments are as `inputs` say.
std::vector<KnownInput> find_known_results(const Method& method, const std::vector<KnownInput>& inputs);

}  // namespace tensord::jit
