#include "kernels/vision/grid_sampler.h"
#include "core/tensor/device_copy.h"

#include <cstring>

#include "core/ops/attributes/may_lack_results.h"
#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"
#include "ops/vision.h"

// grid_sampler, and the grids of affine maps.
namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::KernelContext;
using ops::TensorMeta;
using ops::Value;

GridSampling sampling(int64_t interpolation, int64_t padding, bool align_corners, int64_t spatial_dims) {
  check(interpolation >= 0 && interpolation <= 2, "grid_sampler(): interpolation mode must be 0, 1 or 2, but got ",
        interpolation);
  check(padding >= 0 && padding <= 2, "grid_sampler(): padding mode must be 0, 1 or 2, but got ", padding);
  check(spatial_dims == 2 || interpolation != 2, "grid_sampler(): bicubic interpolation only supports 4D input");
  return {static_cast<Interpolation>(interpolation), static_cast<GridPadding>(padding), align_corners};
}

void check_grid(const Tensor& input, const Tensor& grid, int64_t spatial_dims) {
  check(input.dtype() == grid.dtype(), "grid_sampler(): expected input and grid to have same dtype, but input has ",
        name_of(input.dtype()), " and grid has ", name_of(grid.dtype()));
  check(input.dtype() == DType::kFloat32 || input.dtype() == DType::kFloat64, "grid_sampler(): not implemented for ",
        name_of(input.dtype()));
  check(input.ndim() == spatial_dims + 2 && input.ndim() == grid.ndim(), "grid_sampler(): expected ", spatial_dims + 2,
        "D input and grid with same number of dimensions, but got input with sizes ", input.sizes(),
        " and grid with sizes ", grid.sizes());
  check(input.size(0) == grid.size(0),
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ", input.sizes(),
        " and grid with sizes ", grid.sizes());
  check(grid.size(-1) == spatial_dims, "grid_sampler(): expected grid to have size ", spatial_dims,
        " in last dimension, but got grid with sizes ", grid.sizes());
  for (int64_t dim = 2; dim < input.ndim(); ++dim) {
    check(input.size(dim) > 0,
          "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ", input.sizes(),
          " with dimension ", dim, " being empty");
  }
}

template <int64_t kSpatial>
TensorMeta sample_meta(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding, bool align) {
  check_grid(input, grid, kSpatial);
  sampling(interpolation, padding, align, kSpatial);
  Dims sizes{input.size(0), input.size(1)};
  for (int64_t dim = 1; dim <= kSpatial; ++dim) sizes.push_back(grid.size(dim));
  return {sizes, input.dtype(), {}, input.device()};
}

template <int64_t kSpatial>
void sample_kernel(const KernelContext&, const Tensor& input, const Tensor& grid, int64_t interpolation,
                   int64_t padding, bool align, Tensor& out) {
  if (out.numel() > 0) grid_sample(sampling(interpolation, padding, align, kSpatial), input, grid, out);
}

Tensor zeros(const Tensor& like) {
  const Tensor out = Tensor::empty(like.sizes(), like.dtype(), like.device());
  zero_elements(out);
  return out;
}

template <int64_t kSpatial>
ops::Returns sample_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation,
                             int64_t padding, bool align, const std::vector<bool>& mask) {
  const TensorMeta meta = sample_meta<kSpatial>(input, grid, interpolation, padding, align);
  check(grad.sizes() == meta.sizes && grad.dtype() == meta.dtype,
        "grid_sampler_backward(): expected a gradient of shape ", to_string(meta.sizes), ", but got ", grad.sizes());
  check(mask.size() == 2, "grid_sampler_backward(): expected an output_mask of 2, but got ", mask.size());
  const auto result = [&](const Tensor& like, bool is_wanted) {
    if (!is_wanted) return Tensor();
    return input.is_meta() ? Tensor::meta(like.sizes(), like.dtype(), like.device()) : zeros(like);
  };
  const Tensor of_input = result(input, mask[0]), of_grid = result(grid, true);  // as PyTorch, whatever the mask
  if (!input.is_meta() && grad.numel() > 0) {
    grid_sample_backward(sampling(interpolation, padding, align, kSpatial), grad, input, grid, of_input, of_grid);
  }
  return {{of_input, of_grid}};
}

std::vector<Tensor> sample_gradient(const GradArgs& args, const char* backward) {
  std::vector<Tensor> gradients(args.inputs.size());
  if (!args.grad_outputs[0].defined()) return gradients;
  const ops::Op& op = ops::get_op(backward);
  std::vector<Value> mask{args.needs(0), args.needs(1)};
  const std::vector<Value> results =
      ops::run(op, ops::bind(op, {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.inputs[2], args.inputs[3],
                                  args.inputs[4], ops::make_list(ops::bool_type(), std::move(mask))}));
  for (size_t i = 0; i < 2; ++i) {
    if (args.needs(i) && results[i].is_tensor()) gradients[i] = results[i].to_tensor();
  }
  return gradients;
}

#define GRID_SAMPLER(NAME, SPATIAL)                                                                    \
  OP("aten::" NAME)                                                                                    \
      .infer(sample_meta<SPATIAL>)                                                                     \
      .gradient([](const GradArgs& args) { return sample_gradient(args, "aten::" NAME "_backward"); }) \
      .saves("input, grid");                                                                           \
  IMPL("aten::" NAME, kCPU, sample_kernel<SPATIAL>);                                                   \
  OP("aten::" NAME "_backward").set<ops::MayLackResults>().impl(sample_backward<SPATIAL>)
GRID_SAMPLER("grid_sampler_2d", 2);
GRID_SAMPLER("grid_sampler_3d", 3);
#undef GRID_SAMPLER

OP("aten::grid_sampler")
    .impl([](const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding, bool align) {
      const auto sampler = input.ndim() == 5 ? ops::grid_sampler_3d : ops::grid_sampler_2d;
      return sampler(input, grid, interpolation, padding, align);
    })
    .composite();

// --- grids of affine maps

// -1 … 1 in `count` steps: at the centers of pixels, or from corner to corner.
Tensor steps(int64_t count, DType dtype, Device device, bool align_corners) {
  if (count <= 1) return ops::zeros(Dims{count}, {.dtype = dtype, .device = device});
  const Tensor line = ops::linspace(ops::Scalar(-1), ops::Scalar(1), count, {.dtype = dtype, .device = device});
  if (align_corners) return line;
  return ops::mul(line, ops::Scalar(static_cast<double>(count - 1) / static_cast<double>(count)));
}

// theta [N, d, d + 1] and an image size [N, C, spatial…] → grid [N, spatial…, d].
Tensor affine_grid(const Tensor& theta, const ops::IntList& size, bool align_corners) {
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  check(spatial == 2 || spatial == 3, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  for (const int64_t n : size)
    check(n >= 0, "affine_grid_generator: expected positive sizes, but got ", to_string(size));
  check(theta.ndim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial && theta.size(2) == spatial + 1,
        "Expected a batch of ", spatial, "D affine matrices of shape Nx", spatial, "x", spatial + 1, " for size ",
        to_string(size), ", but got ", theta.sizes());
  Dims places, flat{size[0], 1}, out{size[0]};
  for (int64_t d = 0; d < spatial; ++d) {
    places.push_back(size[d + 2]);
    out.push_back(size[d + 2]);
    check(!__builtin_mul_overflow(flat[1], size[d + 2], &flat[1]), "affine_grid_generator: the size overflows");
  }
  out.push_back(spatial);
  // x of the last dimension first, then y, z and 1.
  std::vector<Tensor> coordinates;
  for (int64_t d = spatial; d-- > 0;) {
    Dims shape(static_cast<size_t>(spatial), 1);
    shape[d] = places[d];
    coordinates.push_back(
        ops::expand(ops::reshape(steps(places[d], theta.dtype(), theta.device(), align_corners), shape), places));
  }
  coordinates.push_back(ops::ones(places, {.dtype = theta.dtype(), .device = theta.device()}));
  const Tensor base = ops::stack(coordinates, int64_t{-1});
  const Tensor points =
      ops::expand(ops::reshape(base, Dims{1, flat[1], spatial + 1}), Dims{size[0], flat[1], spatial + 1});
  return ops::reshape(ops::bmm(points, ops::transpose(theta, 1, 2)), out);
}
OP("aten::affine_grid_generator").impl(affine_grid).composite();

}  // namespace
}  // namespace tensord::kernels
