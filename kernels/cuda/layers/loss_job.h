#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::kernels {

// nll_loss and cross_entropy with labels. Scores are dense: samples, classes, inner; see kernels/loss/class.h.
struct ClassLossJob {
  bool is_entropy = false, is_backward = false;
  bool is_reduced = true, is_mean = false;  // neither: one loss for each sample
  bool keeps_total = true;                  // divides by the sum of the weights; else it is 0
  int8_t loop = 0, dtype = 0, label_dtype = 0, weight_dtype = 0, out_dtype = 0, g_dtype = 0, total_dtype = 0;
  int64_t samples = 0, classes = 0, inner = 1, ignore_index = -100;
  double smoothing = 0;
  cuda::DeviceAddress scores, labels, weight;  // weight null: ones
  cuda::DeviceAddress out, total_weight;       // in the backward: the incoming gradient, and the results of the forward
  cuda::DeviceAddress g;
  cuda::DeviceAddress moments;  // for cross entropy: the largest scores, and the logarithms of the sums of exponentials
  cuda::DeviceAddress weight_sum;  // double; null: the classes are labels
  cuda::DeviceAddress losses;      // double, for each sample
  cuda::ErrorSink errors;
};

// multi_margin_loss and multilabel_margin_loss: dense rows of scores, all double.
struct MarginJob {
  bool has_lists = false, is_backward = false, is_reduced = true;
  int64_t rows = 0, classes = 0;
  double power = 1, margin = 1, share = 1;
  cuda::DeviceAddress scores, labels, weight, is_right;  // labels: int64; is_right: of lists, double
  cuda::DeviceAddress g, out;                            // out: one loss for each row, or the gradient
  cuda::ErrorSink errors;
};

// ctc_loss; see kernels/loss/ctc_cpu.cpp. Numbers are double.
struct CtcJob {
  bool is_backward = false, zero_infinity = false;
  int64_t steps = 0, count = 0, classes = 0, states = 0, blank = 0;
  cuda::DeviceAddress log_probs, labels;
  cuda::DeviceAddress lengths;  // int64: for each sample its steps, its labels, and where these begin
  cuda::DeviceAddress alpha, beta, losses, g, out;
  cuda::ErrorSink errors;
};

}  // namespace tensord::kernels
