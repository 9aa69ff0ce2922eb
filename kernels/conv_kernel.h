#pragma once

#include <memory>

#include "kernels/conv.h"
#include "kernels/packed_plan.h"

// Convolutions of known shape, on operands whose memory order is N, spatial…, C.
namespace tensord::kernels {

// One way to compute one convolution. Immutable; any number of threads may run it at once.
class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  // `other` is null when nothing is added.
  virtual void run(const float* src, const float* other, float* dst, void* scratch) const = 0;

  size_t scratch_bytes = 0;    // memory for `scratch`, aligned to 64
  bool sums_in_place = false;  // run wants the other tensor in dst instead of in `other`
  bool reads_planes = false;   // src lies as N, C, spatial…
  const char* variant = "";
};

// What a kernel is made of. The caller keeps the objects alive while it makes kernels.
struct ConvProblem {
  const ConvGeometry& geometry;
  const Tensor& weight;  // as the archive has it
  const Epilogues& epilogues;
  Dims input, output;       // sizes
  bool has_planes = false;  // the input lies in planes
  int threads = 1;
};

// Strides of memory order N, spatial…, C, for one spatial dimension too.
Dims last_strides(const Dims& sizes);

// By a oneDNN primitive; takes every problem. Throws dnnl::error.
std::unique_ptr<ConvKernel> make_onednn_conv(const ConvProblem& problem, PackedWeights& weights);

}  // namespace tensord::kernels
