// Picks the kernel of an elementwise formula.
#include <array>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"
#include "kernels/cuda/pointwise_rows.h"

namespace tensord::kernels {

void pointwise(const PointwiseJob& job, cuda::StreamHandle stream) {
  static const auto* const table = [] {
    auto* const rows = new std::array<PointwiseRows, kFormulas>();
    fill_arith_cuda(rows->data());
    fill_math_cuda(rows->data());
    fill_activation_cuda(rows->data());
    fill_special_cuda(rows->data());
    return rows;
  }();
  const PointwiseRows& rows = (*table)[job.formula];
  const PointwiseLaunch row = job.compute == cuda::kF32 ? rows.f32 : job.compute == cuda::kF64 ? rows.f64 : rows.i64;
  row(job, stream);
}

}  // namespace tensord::kernels
