#pragma once

#include <cstdint>
#include <string>

#include "core/nn/layers/size_list.h"
#include "core/nn/module.h"

// One-, two- and three-dimensional convolutions and transposed convolutions. Conv2d is in layers.h.
namespace tensord::nn {

// Empty lists: ones, for paddings zeros. One number stands for all dimensions.
struct ConvOptions {
  SizeList stride = {}, padding = {}, dilation = {}, output_padding = {};  // the last one of transposed forms alone
  int64_t groups = 1;
  bool has_bias = true;
};

class Convolution : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight;  // [out, in / groups, kernel…]; transposed: [in, out / groups, kernel…]
  const Tensor bias;    // [out] or undefined

 protected:
  Convolution(std::string kind, size_t dims, bool is_transposed, int64_t in_channels, int64_t out_channels,
              const Dims& kernel_size, const ConvOptions& options);

 private:
  const size_t dims_;
  const bool is_transposed_;
  ConvOptions options_;
};

#define TENSORD_CONVOLUTION(NAME, DIMS, IS_TRANSPOSED)                                                            \
  struct NAME final : Convolution {                                                                               \
    NAME(int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, const ConvOptions& options = {}) \
        : Convolution(#NAME, DIMS, IS_TRANSPOSED, in_channels, out_channels, kernel_size, options) {}             \
  };
TENSORD_CONVOLUTION(Conv1d, 1, false)
TENSORD_CONVOLUTION(Conv3d, 3, false)
TENSORD_CONVOLUTION(ConvTranspose1d, 1, true)
TENSORD_CONVOLUTION(ConvTranspose2d, 2, true)
TENSORD_CONVOLUTION(ConvTranspose3d, 3, true)
#undef TENSORD_CONVOLUTION

}  // namespace tensord::nn
