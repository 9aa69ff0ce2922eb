// Convolutions in cuDNN's terms: dense tensors, the same padding on both sides, two or three dimensions.
#include "kernels/conv/dnn_cuda.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace tensord::kernels {
namespace {

bool has_dnn_dtype(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat64;
}

// Whether the padding at the low side on both sides makes a grid of this size. What lies beyond the image is 0 anyway.
bool is_symmetric(const ConvGeometry& g, const Tensor& image, const Tensor& grid, const Tensor& weight) {
  for (size_t d = 0; d < g.spatial(); ++d) {
    const int64_t window = g.dilation[d] * (weight.sizes()[2 + d] - 1) + 1,
                  room = image.sizes()[2 + d] + 2 * g.padding_low[d] - window;
    if (room < 0 || room / g.stride[d] + 1 != grid.sizes()[2 + d]) return false;
  }
  return true;
}

// The library counts in 32 bits.
bool has_small_sizes(const ConvGeometry& g, const Tensor& image, const Tensor& grid, const Tensor& weight) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const auto is_small = [](int64_t value) { return value >= 0 && value <= kMax; };
  return std::max({image.numel(), grid.numel(), weight.numel(), g.groups}) <= kMax &&
         std::ranges::all_of(g.padding_low, is_small) && std::ranges::all_of(g.stride, is_small) &&
         std::ranges::all_of(g.dilation, is_small);
}

// With one dimension, a first one of size 1 is put before it.
DnnConvJob dnn_job(ConvResult result, const ConvGeometry& g, const Tensor& image, const Tensor& grid,
                   const Tensor& weight) {
  DnnConvJob job;
  job.result = result;
  job.dtype = static_cast<int8_t>(weight.dtype());
  job.allows_tf32 = weight.dtype() == DType::kFloat32 && execution_context().numerics.allows_tf32_convolutions;
  job.spatial = std::max(2, static_cast<int>(g.spatial()));
  job.groups = static_cast<int>(g.groups);
  job.samples = static_cast<int>(image.size(0));
  job.image_channels = static_cast<int>(image.size(1));
  job.grid_channels = static_cast<int>(grid.size(1));
  const size_t skipped = static_cast<size_t>(job.spatial) - g.spatial();
  if (skipped == 1) job.image[0] = job.grid[0] = job.kernel[0] = job.stride[0] = job.dilation[0] = 1;
  for (size_t d = 0; d < g.spatial(); ++d) {
    job.image[skipped + d] = static_cast<int>(image.sizes()[2 + d]);
    job.grid[skipped + d] = static_cast<int>(grid.sizes()[2 + d]);
    job.kernel[skipped + d] = static_cast<int>(weight.sizes()[2 + d]);
    job.stride[skipped + d] = static_cast<int>(g.stride[d]);
    job.padding[skipped + d] = static_cast<int>(g.padding_low[d]);
    job.dilation[skipped + d] = static_cast<int>(g.dilation[d]);
  }
  return job;
}

}  // namespace

bool conv_by_library(ConvResult result, const ConvGeometry& g, const Tensor& image, const Tensor& grid,
                     const Tensor& weight) {
  if (!has_dnn_dtype(weight.dtype()) || *library_table().why_no_dnn() != '\0') return false;
  if (image.numel() == 0 || grid.numel() == 0 || weight.numel() == 0) return false;
  if (!has_small_sizes(g, image, grid, weight) || !is_symmetric(g, image, grid, weight)) return false;
  const Device device = weight.device();
  const ops::KernelContext context(device);
  const cuda::DeviceScope scope(device.index);
  const auto stream = static_cast<cuda::StreamHandle>(context.stream->handle());
  DnnConvJob job = dnn_job(result, g, image, grid, weight);
  cuda::check_cuda(library_table().plan_convolution(job, stream), "a convolution");
  if (!job.has_algorithm) return false;
  const Tensor& out = result == ConvResult::kGrid ? grid : result == ConvResult::kImage ? image : weight;
  const auto dense = [&](const Tensor& x) {
    return !x.is_same(out) || x.is_contiguous() ? x.contiguous() : Tensor::empty(x.sizes(), x.dtype(), device);
  };
  const Tensor image_there = dense(image), grid_there = dense(grid), weight_there = dense(weight);
  job.image_at = image_there.raw_data(), job.grid_at = grid_there.raw_data(), job.weight_at = weight_there.raw_data();
  const Workspace workspace(job.workspace_bytes, device);
  job.workspace = workspace.at();
  cuda::check_cuda(library_table().convolution(job, stream), "a convolution");
  const Tensor& written = result == ConvResult::kGrid    ? grid_there
                          : result == ConvResult::kImage ? image_there
                                                         : weight_there;
  if (!out.is_contiguous()) out.copy_from(written);
  return true;
}

}  // namespace tensord::kernels
