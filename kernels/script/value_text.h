#pragma once

#include <string>

#include "core/ops/value.h"

namespace tensord::kernels {

// libtorch's spelling of a float: "1.", "0.10000000000000001", "1e+22", "nan".
std::string float_text(double value);
// libtorch's str(): lists as "[a, b]" with strings bare, None, True, "{k: v}". Nesting is bounded.
std::string value_text(const ops::Value& value);

// One element of a CPU tensor, by its row-major index: floats with as many digits as PyTorch prints by default.
std::string element_text(const Tensor& x, int64_t index);

}  // namespace tensord::kernels
