#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/attributes/packed.h"

// What the processor's products and convolutions do with their sums on the way out.
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

// Empty for what is no step: another formula or numbers, or a scale of channels.
std::optional<EpilogueStep> epilogue_step_of(const ops::Epilogue& epilogue);

}  // namespace tensord::kernels
