#pragma once

#include <vector>

#include "core/ops/op.h"

namespace tensord::kernels {

// Of embedding_bag, with or without the last argument, padding_idx.
std::vector<Tensor> gradient_of_embedding_bag(const ops::GradArgs& args);

}  // namespace tensord::kernels
