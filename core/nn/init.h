#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

// Initial values of parameters, in place and outside of autograd, drawn from the thread's current generator. A seed
// gives PyTorch's numbers.
namespace tensord::nn::init {

enum class FanMode { kFanIn, kFanOut };
enum class Nonlinearity { kLinear, kSigmoid, kTanh, kRelu, kLeakyRelu, kSelu };

// The scale of weights that preserves variance; `slope` is leaky_relu's.
double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

struct Fans {
  int64_t in, out;
};
// For a weight [out, in, kernel…]. Throws Error for fewer than two dimensions.
Fans fans_of(const Tensor& weight);

void uniform_(const Tensor& tensor, double from = 0, double to = 1);
void normal_(const Tensor& tensor, double mean = 0, double std = 1);
void constant_(const Tensor& tensor, double value);
inline void zeros_(const Tensor& tensor) { constant_(tensor, 0); }
inline void ones_(const Tensor& tensor) { constant_(tensor, 1); }
void xavier_uniform_(const Tensor& weight, double gain = 1);
void xavier_normal_(const Tensor& weight, double gain = 1);
void kaiming_uniform_(const Tensor& weight, double slope = 0, FanMode mode = FanMode::kFanIn,
                      Nonlinearity nonlinearity = Nonlinearity::kLeakyRelu);
void kaiming_normal_(const Tensor& weight, double slope = 0, FanMode mode = FanMode::kFanIn,
                     Nonlinearity nonlinearity = Nonlinearity::kLeakyRelu);

}  // namespace tensord::nn::init
