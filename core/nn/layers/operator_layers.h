#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/layers/size_list.h"
#include "core/nn/module.h"
#include "core/ops/op.h"

// Layers and losses without parameters that call one operator: tensors first, then the layer's options. Names, order
// and defaults of arguments are PyTorch's. The operator checks the options when it is called.
namespace tensord::nn {

// A layer of one tensor.
class OperatorLayer : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 protected:
  // `op` is the operator's full name. Throws Error{kUnimplemented} if it does not exist.
  OperatorLayer(std::string kind, const char* op, std::vector<ops::Value> options = {});

 private:
  const ops::Op& op_;
  const std::vector<ops::Value> options_;
};

#define TENSORD_LAYER(NAME, OP)                   \
  struct NAME final : OperatorLayer {             \
    NAME() : OperatorLayer(#NAME, "aten::" OP) {} \
  };
TENSORD_LAYER(Tanh, "tanh")
TENSORD_LAYER(Sigmoid, "sigmoid")
TENSORD_LAYER(ReLU6, "relu6")
TENSORD_LAYER(SiLU, "silu")
TENSORD_LAYER(Mish, "mish")
TENSORD_LAYER(SELU, "selu")
TENSORD_LAYER(Hardswish, "hardswish")
TENSORD_LAYER(Hardsigmoid, "hardsigmoid")
TENSORD_LAYER(LogSigmoid, "log_sigmoid")
#undef TENSORD_LAYER

struct ELU final : OperatorLayer {
  explicit ELU(double alpha = 1) : OperatorLayer("ELU", "aten::elu", {alpha}) {}
};
struct CELU final : OperatorLayer {
  explicit CELU(double alpha = 1) : OperatorLayer("CELU", "aten::celu", {alpha}) {}
};
struct LeakyReLU final : OperatorLayer {
  explicit LeakyReLU(double slope = 0.01) : OperatorLayer("LeakyReLU", "aten::leaky_relu", {slope}) {}
};
struct Hardtanh final : OperatorLayer {
  explicit Hardtanh(double min = -1, double max = 1) : OperatorLayer("Hardtanh", "aten::hardtanh", {min, max}) {}
};
struct Threshold final : OperatorLayer {
  Threshold(double threshold, double value) : OperatorLayer("Threshold", "aten::threshold", {threshold, value}) {}
};
struct Hardshrink final : OperatorLayer {
  explicit Hardshrink(double lambda = 0.5) : OperatorLayer("Hardshrink", "aten::hardshrink", {lambda}) {}
};
struct Softshrink final : OperatorLayer {
  explicit Softshrink(double lambda = 0.5) : OperatorLayer("Softshrink", "aten::softshrink", {lambda}) {}
};
struct Softplus final : OperatorLayer {
  explicit Softplus(double beta = 1, double threshold = 20)
      : OperatorLayer("Softplus", "aten::softplus", {beta, threshold}) {}
};
struct GLU final : OperatorLayer {
  explicit GLU(int64_t dim = -1) : OperatorLayer("GLU", "aten::glu", {dim}) {}
};
struct Softmax final : OperatorLayer {
  explicit Softmax(int64_t dim) : OperatorLayer("Softmax", "aten::softmax.int", {dim}) {}
};
struct LogSoftmax final : OperatorLayer {
  explicit LogSoftmax(int64_t dim) : OperatorLayer("LogSoftmax", "aten::log_softmax.int", {dim}) {}
};
struct Unflatten final : OperatorLayer {
  Unflatten(int64_t dim, const Dims& sizes)
      : OperatorLayer("Unflatten", "aten::unflatten.int", {dim, ops::make_int_list(sizes)}) {}
};
struct PixelShuffle final : OperatorLayer {
  explicit PixelShuffle(int64_t factor) : OperatorLayer("PixelShuffle", "aten::pixel_shuffle", {factor}) {}
};
struct PixelUnshuffle final : OperatorLayer {
  explicit PixelUnshuffle(int64_t factor) : OperatorLayer("PixelUnshuffle", "aten::pixel_unshuffle", {factor}) {}
};
struct ChannelShuffle final : OperatorLayer {
  explicit ChannelShuffle(int64_t groups) : OperatorLayer("ChannelShuffle", "aten::channel_shuffle", {groups}) {}
};
// Over the channels of [N, channels, height, width], or [channels, height, width].
struct Softmax2d final : OperatorLayer {
  Softmax2d() : OperatorLayer("Softmax2d", "aten::softmax.int", {-3}) {}
};
// x / (1 + |x|), x - tanh(x), softmax(-x).
class Softsign final : public Layer {
 public:
  Softsign() : Layer("Softsign") {}
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
};
class Tanhshrink final : public Layer {
 public:
  Tanhshrink() : Layer("Tanhshrink") {}
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
};
class Softmin final : public Layer {
 public:
  explicit Softmin(int64_t dim) : Layer("Softmin"), dim_(dim) {}
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 private:
  const int64_t dim_;
};

// im2col and col2im: windows of an image as columns, and columns summed into an image. One number applies to height and
// width.
struct Unfold final : OperatorLayer {
  TENSORD_LIST_ALONE(Unfold)
  explicit Unfold(const SizeList& kernel_size, const SizeList& dilation = {1}, const SizeList& padding = {0},
                  const SizeList& stride = {1});
};
struct Fold final : OperatorLayer {
  Fold(const SizeList& output_size, const SizeList& kernel_size, const SizeList& dilation = {1},
       const SizeList& padding = {0}, const SizeList& stride = {1});
};

// Layers that differ during training: they zero single elements or whole channels (Alpha: replace them such that mean
// and variance stay), or draw random slopes.
class TrainingLayer : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 protected:
  // Accepts inputs of `min` to `max` dimensions.
  TrainingLayer(std::string kind, const char* op, std::vector<ops::Value> options, int64_t min = 0,
                int64_t max = kMaxDims);
  static ops::Value chance(double p);

 private:
  const ops::Op& op_;
  const std::vector<ops::Value> options_;
  const int64_t min_, max_;
};
struct AlphaDropout final : TrainingLayer {
  explicit AlphaDropout(double p = 0.5) : TrainingLayer("AlphaDropout", "aten::alpha_dropout", {chance(p)}) {}
};
struct FeatureAlphaDropout final : TrainingLayer {
  explicit FeatureAlphaDropout(double p = 0.5)
      : TrainingLayer("FeatureAlphaDropout", "aten::feature_alpha_dropout", {chance(p)}) {}
};
// Drops whole channels of [N, channels, …]; N is required.
struct Dropout2d final : TrainingLayer {
  explicit Dropout2d(double p = 0.5) : TrainingLayer("Dropout2d", "aten::feature_dropout", {chance(p)}, 4, 4) {}
};
struct Dropout3d final : TrainingLayer {
  explicit Dropout3d(double p = 0.5) : TrainingLayer("Dropout3d", "aten::feature_dropout", {chance(p)}, 5, 5) {}
};
struct Dropout1d final : TrainingLayer {
  explicit Dropout1d(double p = 0.5) : TrainingLayer("Dropout1d", "aten::feature_dropout", {chance(p)}, 3, 3) {}
};
struct RReLU final : TrainingLayer {
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3)
      : TrainingLayer("RReLU", "aten::rrelu", {lower, upper}) {}
};

// Pools. One number, a list of one, stands for all dimensions; no stride: the kernel's size.
#define TENSORD_POOL(DIMS)                                                                                          \
  struct AvgPool##DIMS final : OperatorLayer {                                                                      \
    TENSORD_LIST_ALONE(AvgPool##DIMS)                                                                               \
    explicit AvgPool##DIMS(const SizeList& kernel_size, const SizeList& stride = {}, const SizeList& padding = {0}, \
                           bool ceil_mode = false, bool count_include_pad = true)                                   \
        : OperatorLayer(                                                                                            \
              "AvgPool" #DIMS, "aten::avg_pool" #DIMS,                                                              \
              {pool_list(kernel_size), pool_list(stride), pool_list(padding), ceil_mode, count_include_pad}) {}     \
  };                                                                                                                \
  struct AdaptiveAvgPool##DIMS final : OperatorLayer {                                                              \
    TENSORD_LIST_ALONE(AdaptiveAvgPool##DIMS)                                                                       \
    explicit AdaptiveAvgPool##DIMS(const SizeList& output_size)                                                     \
        : OperatorLayer("AdaptiveAvgPool" #DIMS, "aten::adaptive_avg_pool" #DIMS, {pool_list(output_size)}) {}      \
  };                                                                                                                \
  struct AdaptiveMaxPool##DIMS final : OperatorLayer {                                                              \
    TENSORD_LIST_ALONE(AdaptiveMaxPool##DIMS)                                                                       \
    explicit AdaptiveMaxPool##DIMS(const SizeList& output_size)                                                     \
        : OperatorLayer("AdaptiveMaxPool" #DIMS, "aten::adaptive_max_pool" #DIMS, {pool_list(output_size)}) {}      \
  };
#define TENSORD_MAX_POOL(DIMS)                                                                                      \
  struct MaxPool##DIMS final : OperatorLayer {                                                                      \
    TENSORD_LIST_ALONE(MaxPool##DIMS)                                                                               \
    explicit MaxPool##DIMS(const SizeList& kernel_size, const SizeList& stride = {}, const SizeList& padding = {0}, \
                           const SizeList& dilation = {1}, bool ceil_mode = false)                                  \
        : OperatorLayer(                                                                                            \
              "MaxPool" #DIMS, "aten::max_pool" #DIMS,                                                              \
              {pool_list(kernel_size), pool_list(stride), pool_list(padding), pool_list(dilation), ceil_mode}) {}   \
  };
// Passes a single number as a scalar: the operator repeats it.
inline ops::Value pool_list(const Dims& dims) {
  return dims.size() == 1 ? ops::Value(dims[0]) : ops::make_int_list(dims);
}
TENSORD_POOL(1d)
TENSORD_POOL(2d)
TENSORD_POOL(3d)
TENSORD_MAX_POOL(1d)
TENSORD_MAX_POOL(3d)
#undef TENSORD_POOL
#undef TENSORD_MAX_POOL

// Padding of the last dimensions: {left, right, top, bottom, …}. In layers for one, two and three dimensions, one
// number applies to all sides.
Dims margins_of(const char* kind, const Dims& padding, size_t dims);
#define TENSORD_PADS(DIMS)                                                                                             \
  struct ConstantPad##DIMS##d final : OperatorLayer {                                                                  \
    ConstantPad##DIMS##d(const SizeList& padding, double value)                                                        \
        : OperatorLayer("ConstantPad" #DIMS "d", "aten::pad",                                                          \
                        {ops::make_int_list(margins_of("ConstantPad" #DIMS "d", padding, DIMS)), "constant", value}) { \
    }                                                                                                                  \
  };                                                                                                                   \
  TENSORD_PAD(ReflectionPad##DIMS##d, DIMS, "reflect")                                                                 \
  TENSORD_PAD(ReplicationPad##DIMS##d, DIMS, "replicate")                                                              \
  TENSORD_PAD(CircularPad##DIMS##d, DIMS, "circular")
#define TENSORD_PAD(NAME, DIMS, MODE)                                                                  \
  struct NAME final : OperatorLayer {                                                                  \
    TENSORD_LIST_ALONE(NAME)                                                                           \
    explicit NAME(const SizeList& padding)                                                             \
        : OperatorLayer(#NAME, "aten::pad",                                                            \
                        {ops::make_int_list(margins_of(#NAME, padding, DIMS)), MODE, ops::Value()}) {} \
  };
TENSORD_PADS(1)
TENSORD_PADS(2)
TENSORD_PADS(3)
#undef TENSORD_PAD
#undef TENSORD_PADS
struct ConstantPad final : OperatorLayer {
  ConstantPad(const SizeList& padding, double value)
      : OperatorLayer("ConstantPad", "aten::pad", {ops::make_int_list(padding), "constant", value}) {}
};
#define TENSORD_ZERO_PAD(DIMS)                                                                                    \
  struct ZeroPad##DIMS##d final : OperatorLayer {                                                                 \
    TENSORD_LIST_ALONE(ZeroPad##DIMS##d)                                                                          \
    explicit ZeroPad##DIMS##d(const SizeList& padding)                                                            \
        : OperatorLayer("ZeroPad" #DIMS "d", "aten::pad",                                                         \
                        {ops::make_int_list(margins_of("ZeroPad" #DIMS "d", padding, DIMS)), "constant", 0.0}) {} \
  };
TENSORD_ZERO_PAD(1)
TENSORD_ZERO_PAD(2)
TENSORD_ZERO_PAD(3)
#undef TENSORD_ZERO_PAD
struct ReflectionPad final : OperatorLayer {
  TENSORD_LIST_ALONE(ReflectionPad)
  explicit ReflectionPad(const SizeList& padding)
      : OperatorLayer("ReflectionPad", "aten::pad", {ops::make_int_list(padding), "reflect"}) {}
};
struct ReplicationPad final : OperatorLayer {
  TENSORD_LIST_ALONE(ReplicationPad)
  explicit ReplicationPad(const SizeList& padding)
      : OperatorLayer("ReplicationPad", "aten::pad", {ops::make_int_list(padding), "replicate"}) {}
};
struct CircularPad final : OperatorLayer {
  TENSORD_LIST_ALONE(CircularPad)
  explicit CircularPad(const SizeList& padding)
      : OperatorLayer("CircularPad", "aten::pad", {ops::make_int_list(padding), "circular"}) {}
};

}  // namespace tensord::nn
