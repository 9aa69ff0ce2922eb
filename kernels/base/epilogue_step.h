#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/attributes/packed.h"

// The epilogues of the CPU's matrix products and convolutions.
namespace tensord::kernels {

// A function of the sum, or the addition of the other tensor.
struct EpilogueStep {
  enum class Kind : uint8_t {
    kRelu,    // max(x, 0) + alpha * min(x, 0)
    kClip,    // min(max(x, alpha), beta)
    kLinear,  // alpha * x + beta
    kSigmoid,
    kTanh,
    kGelu,
    kGeluTanh,
    kSilu,
    kHardSwish,
    kHardSigmoid,
    kElu,  // x > 0 ? x : alpha * (exp(x) - 1)
    kAdd,  // x + the other tensor
  };
  Kind kind = Kind::kLinear;
  float alpha = 1, beta = 0;
};

// Returns nothing if it is not one of these steps: another formula or constants, or a scale of channels.
std::optional<EpilogueStep> epilogue_step_of(const ops::Epilogue& epilogue);

}  // namespace tensord::kernels
