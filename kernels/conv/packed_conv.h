#pragma once

#include "core/ops/packed.h"
#include "kernels/conv/conv.h"

namespace tensord::kernels {

// A convolution with its weights bound; null when these cannot be prepared (not f32 on the CPU,
// transposed). `arguments` are those of the call, with input, weight and bias first.
IntrusivePtr<ops::PackedOp> pack_conv(const ops::Op& op, std::span<const ops::Value> arguments,
                                      ops::Precision precision, const ConvGeometry& geometry);

}  // namespace tensord::kernels
