#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/layers/size_list.h"
#include "core/nn/module.h"

// Pools that are more than one operator, and what undoes pools and windows. The others are in operator_layers.h. One
// number stands for all dimensions; no stride: the kernel's size.
namespace tensord::nn {

// (sum of x^p)^(1/p) over windows.
class LPPool : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 protected:
  LPPool(std::string kind, size_t dims, double norm_type, const Dims& kernel_size, const Dims& stride, bool ceil_mode);

 private:
  const size_t dims_;
  const double norm_type_;
  const Dims kernel_size_, stride_;
  const bool ceil_mode_;
};
#define TENSORD_LP_POOL(DIMS)                                                                   \
  struct LPPool##DIMS##d final : LPPool {                                                       \
    LPPool##DIMS##d(double norm_type, const SizeList& kernel_size, const SizeList& stride = {}, \
                    bool ceil_mode = false)                                                     \
        : LPPool("LPPool" #DIMS "d", DIMS, norm_type, kernel_size, stride, ceil_mode) {}        \
  };
TENSORD_LP_POOL(1)
TENSORD_LP_POOL(2)
TENSORD_LP_POOL(3)
#undef TENSORD_LP_POOL

// The maximum of windows at random positions, drawn from the thread's generator.
class FractionalMaxPool : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 protected:
  FractionalMaxPool(std::string kind, size_t dims, const Dims& kernel_size, const Dims& output_size,
                    const std::vector<double>& output_ratio);

 private:
  const size_t dims_;
  const Dims kernel_size_, output_size_;
  const std::vector<double> output_ratio_;
};
// Either the output size, or its ratio to the input size.
struct FractionalMaxPool2d final : FractionalMaxPool {
  FractionalMaxPool2d(const SizeList& kernel_size, const SizeList& output_size)
      : FractionalMaxPool("FractionalMaxPool2d", 2, kernel_size, output_size, {}) {}
  FractionalMaxPool2d(const SizeList& kernel_size, const std::vector<double>& output_ratio)
      : FractionalMaxPool("FractionalMaxPool2d", 2, kernel_size, {}, output_ratio) {}
};
struct FractionalMaxPool3d final : FractionalMaxPool {
  FractionalMaxPool3d(const SizeList& kernel_size, const SizeList& output_size)
      : FractionalMaxPool("FractionalMaxPool3d", 3, kernel_size, output_size, {}) {}
  FractionalMaxPool3d(const SizeList& kernel_size, const std::vector<double>& output_ratio)
      : FractionalMaxPool("FractionalMaxPool3d", 3, kernel_size, {}, output_ratio) {}
};

// Scatters values back to the positions that a pool took them from; zeros elsewhere. Inputs: the values and their
// indices (int64), as returned by aten::max_pool2d_with_indices and similar operators.
class MaxUnpool : public Module {
 public:
  Tensors forward(const Tensors& inputs) override;
  // Unpools to this size of the last dimensions, if the kernel allows several.
  Tensor unpool(const Tensor& input, const Tensor& indices, const Dims& output_size) const;

 protected:
  MaxUnpool(std::string kind, size_t dims, const Dims& kernel_size, const Dims& stride, const Dims& padding);

 private:
  const size_t dims_;
  const Dims kernel_size_, stride_, padding_;
};
#define TENSORD_MAX_UNPOOL(DIMS)                                                          \
  struct MaxUnpool##DIMS##d final : MaxUnpool {                                           \
    TENSORD_LIST_ALONE(MaxUnpool##DIMS##d)                                                \
    explicit MaxUnpool##DIMS##d(const SizeList& kernel_size, const SizeList& stride = {}, \
                                const SizeList& padding = {0})                            \
        : MaxUnpool("MaxUnpool" #DIMS "d", DIMS, kernel_size, stride, padding) {}         \
  };
TENSORD_MAX_UNPOOL(1)
TENSORD_MAX_UNPOOL(2)
TENSORD_MAX_UNPOOL(3)
#undef TENSORD_MAX_UNPOOL

// Resizes the last dimensions to a size or by a factor; "nearest", "nearest-exact", "linear" (3 dimensions in total),
// "bilinear", "bicubic" (4) or "trilinear" (5).
struct UpsampleOptions {
  SizeList size = {};  // or:
  std::vector<double> scale_factor = {};
  std::string mode = "nearest";
  bool align_corners = false;
};
class Upsample : public Layer {
 public:
  explicit Upsample(UpsampleOptions options);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 protected:
  Upsample(std::string kind, UpsampleOptions options);

 private:
  const UpsampleOptions options_;
};
struct UpsamplingNearest2d final : Upsample {
  TENSORD_LIST_ALONE(UpsamplingNearest2d)
  explicit UpsamplingNearest2d(const SizeList& size) : Upsample("UpsamplingNearest2d", {.size = size}) {}
  explicit UpsamplingNearest2d(const std::vector<double>& scale_factor)
      : Upsample("UpsamplingNearest2d", {.scale_factor = scale_factor}) {}
};
struct UpsamplingBilinear2d final : Upsample {
  TENSORD_LIST_ALONE(UpsamplingBilinear2d)
  explicit UpsamplingBilinear2d(const SizeList& size)
      : Upsample("UpsamplingBilinear2d", {.size = size, .mode = "bilinear", .align_corners = true}) {}
  explicit UpsamplingBilinear2d(const std::vector<double>& scale_factor)
      : Upsample("UpsamplingBilinear2d", {.scale_factor = scale_factor, .mode = "bilinear", .align_corners = true}) {}
};

}  // namespace tensord::nn
