#pragma once

#include <optional>

#include "kernels/conv/conv.h"

// Convolutions of f32 or bfloat16 and their gradients on oneDNN. Primitives are made once for each shape, memory order
// and number of threads, and cached.
namespace tensord::kernels {

// A convolution maps the image and the weight to the grid; the other passes compute one of these from the other two.
enum class ConvPass : uint8_t {
  kForward,     // grid = image * weight + bias
  kData,        // image = the gradient for it, by the grid's
  kWeights,     // weight = the gradient for it, by the grid's
  kTransposed,  // image = the transposed convolution of grid + bias; weights lie as for kForward
};

// The tensors of a pass: batched, of one dtype, of dense memory or channels_last. `bias` may be null; it is read, and
// for kWeights written (the gradient for it).
struct ConvTensors {
  const Tensor &image, &weight, &grid;
  const Tensor* bias = nullptr;
};

// `geometry` is that of the convolution from image to grid, whatever the pass. Returns false and does nothing for
// bfloat16 where oneDNN has its reference code alone. Thread-safe. Throws dnnl::error.
bool run_conv_primitive(ConvPass pass, const ConvGeometry& geometry, const ConvTensors& tensors);
// Whether oneDNN covers the shapes.
bool fits_conv_primitive(const ConvGeometry& geometry, const ConvTensors& tensors);

// Limit of cached primitives; the least recently used one is evicted first.
inline constexpr size_t kMaxConvPrimitives = 512;

}  // namespace tensord::kernels
