#pragma once

#include "core/ops/attributes/packed.h"
#include "kernels/conv/conv.h"

namespace tensord::kernels {

// A convolution with its weights bound; null when these cannot be prepared (not f32 on the CPU,
// transposed). The arguments start with input, weight and bias.
IntrusivePtr<ops::PackedOp> pack_conv(const ops::PackArgs& args, const ConvGeometry& geometry);

}  // namespace tensord::kernels
