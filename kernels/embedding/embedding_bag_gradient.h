#pragma once

#include <vector>

#include "core/ops/op.h"

namespace tensord::kernels {

// Of embedding_bag, with or without the last argument, padding_idx.
std::vector<Tensor> gradient_of_embedding_bag(const ops::GradArgs& args);

// Of each index: its bag, int64 [indices], and how many rows that has, at least 1, float64 [indices, 1].
struct BagsOfIndices {
  Tensor bag, size;
};
// Throws Error where the `count` bags or the indices of a table of `rows` rows do not fit.
BagsOfIndices bags_of_indices(const Tensor& indices, const Tensor& offsets, int64_t count, int64_t rows,
                              int64_t padding);

}  // namespace tensord::kernels
