#pragma once

#include "core/tensor/cuda/api.h"
#include "kernels/cuda/pointwise_job.h"
#include "kernels/pointwise/formula.h"

// Between the files of the library: the kernels of each formula.
namespace tensord::kernels {

using PointwiseLaunch = void (*)(const PointwiseJob&, cuda::StreamHandle);
struct PointwiseRows {
  PointwiseLaunch f32 = nullptr, f64 = nullptr, i64 = nullptr;
};
void fill_arith_cuda(PointwiseRows* rows);
void fill_math_cuda(PointwiseRows* rows);
void fill_activation_cuda(PointwiseRows* rows);
void fill_special_cuda(PointwiseRows* rows);

}  // namespace tensord::kernels
