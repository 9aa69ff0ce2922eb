#include "kernels/detection/regions.h"

#include "kernels/expr/compose.h"
#include "ops/detection.h"
#include "ops/factory.h"
#include "ops/view.h"

// torchvision's operators on boxes.
namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::KernelContext;
using ops::TensorMeta;

void check_regions(const char* name, const Tensor& image, const Tensor& boxes, const RegionGrid& grid) {
  check(image.dtype() == DType::kFloat32 || image.dtype() == DType::kFloat64, name, "(): not implemented for ",
        name_of(image.dtype()));
  check(boxes.dtype() == image.dtype(), name, "(): expected input and rois to have the same type, but got ",
        name_of(image.dtype()), " and ", name_of(boxes.dtype()));
  check(image.ndim() == 4, name, "(): expected an input of 4 dimensions, but got ", image.ndim());
  check(boxes.ndim() == 2 && boxes.size(1) == 5, name, "(): rois must have shape as Tensor[K, 5], but got ",
        boxes.sizes());
  check(grid.height > 0 && grid.width > 0, name, "(): pooled sizes must be positive, but got ", grid.height, " x ",
        grid.width);
  int64_t bins = 0;
  check(!__builtin_mul_overflow(grid.height, grid.width, &bins), name, "(): pooled sizes overflow");
  check(!grid.is_position_sensitive || image.size(1) % bins == 0, name,
        "(): input channels must be a multiple of pooling height * pooling width, but got ", image.size(1));
}

int64_t channels_of(const Tensor& image, const RegionGrid& grid) {
  return grid.is_position_sensitive ? image.size(1) / (grid.height * grid.width) : image.size(1);
}

TensorMeta result_meta(const char* name, const Tensor& image, const Tensor& boxes, const RegionGrid& grid) {
  check_regions(name, image, boxes, grid);
  return {Dims{boxes.size(0), channels_of(image, grid), grid.height, grid.width}, image.dtype(), {}, image.device()};
}

std::vector<TensorMeta> with_places(TensorMeta meta) {
  TensorMeta places = meta;
  places.dtype = DType::kInt32;
  return {std::move(meta), std::move(places)};
}

// A gradient [N, C, H, W] of zeros, for `add` to add to.
template <class Add>
Tensor image_gradient(const char* name, const Tensor& grad, const Tensor& boxes, const RegionGrid& grid,
                      const Dims& sizes, Add&& add) {
  Tensor image = Tensor::meta(sizes, grad.dtype(), grad.device());
  const TensorMeta expected = result_meta(name, image, boxes, grid);
  check(grad.sizes() == expected.sizes, name, "(): expected a gradient of shape ", to_string(expected.sizes),
        ", but got ", grad.sizes());
  if (grad.is_meta()) return image;
  const Tensor out = ops::zeros(sizes, {.dtype = grad.dtype(), .device = grad.device()});
  if (out.numel() > 0 && grad.numel() > 0) add(grad.contiguous(), boxes.contiguous(), out);
  return out;
}

// The channel that each bin reads.
void write_channels(const RegionGrid& grid, const Tensor& out) {
  const int64_t bins = grid.height * grid.width, channels = out.size(1);
  const Tensor line = ops::arange(ops::Scalar(channels * bins), {.dtype = DType::kInt32, .device = out.device()});
  ops::copy_(out, ops::expand(ops::reshape(line, Dims{1, channels, grid.height, grid.width}), out.sizes()));
}

// --- roi_align

RegionGrid align_grid(double scale, int64_t height, int64_t width, int64_t ratio, bool aligned, bool sensitive) {
  return {scale, height, width, std::max<int64_t>(ratio, 0), aligned, sensitive};
}

OP("torchvision::roi_align")
    .infer([](const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width, int64_t ratio,
              bool aligned) {
      return result_meta("roi_align", image, boxes, align_grid(scale, height, width, ratio, aligned, false));
    })
    .gradient([](const GradArgs& args) -> std::vector<Tensor> {
      const auto& in = args.inputs;
      const Dims sizes = in[0].to_tensor().sizes();
      if (!args.grad_outputs[0].defined()) return std::vector<Tensor>(in.size());
      std::vector<Tensor> gradients(in.size());
      gradients[0] = ops::torchvision__roi_align_backward(
          args.grad_outputs[0], in[1].to_tensor(), ops::unbox<double>(in[2]), in[3].to_int(), in[4].to_int(), sizes[0],
          sizes[1], sizes[2], sizes[3], in[5].to_int(), in[6].to_bool());
      return gradients;
    })
    .saves("rois");
IMPL("torchvision::roi_align", kCPU,
     [](const KernelContext&, const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width,
        int64_t ratio, bool aligned, Tensor& out) {
       if (out.numel() == 0) return;
       region_means(align_grid(scale, height, width, ratio, aligned, false), image.contiguous(), boxes.contiguous(),
                    out);
     });
OP("torchvision::_roi_align_backward")
    .impl([](const Tensor& grad, const Tensor& boxes, double scale, int64_t rows, int64_t columns, int64_t batch,
             int64_t channels, int64_t height, int64_t width, int64_t ratio, bool aligned) {
      const RegionGrid grid = align_grid(scale, rows, columns, ratio, aligned, false);
      return image_gradient(
          "roi_align_backward", grad, boxes, grid, Dims{batch, channels, height, width},
          [&](const Tensor& g, const Tensor& b, const Tensor& out) { region_means_backward(grid, g, b, out); });
    });

OP("torchvision::ps_roi_align")
    .infer([](const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width, int64_t ratio) {
      return with_places(
          result_meta("ps_roi_align", image, boxes, align_grid(scale, height, width, ratio, true, true)));
    })
    .gradient([](const GradArgs& args) -> std::vector<Tensor> {
      const auto& in = args.inputs;
      const Dims sizes = in[0].to_tensor().sizes();
      std::vector<Tensor> gradients(in.size());
      if (!args.grad_outputs[0].defined()) return gradients;
      gradients[0] = ops::torchvision__ps_roi_align_backward(
          args.grad_outputs[0], in[1].to_tensor(), args.outputs[1].to_tensor(), ops::unbox<double>(in[2]),
          in[3].to_int(), in[4].to_int(), in[5].to_int(), sizes[0], sizes[1], sizes[2], sizes[3]);
      return gradients;
    })
    .saves("rois");
IMPL("torchvision::ps_roi_align", kCPU,
     [](const KernelContext&, const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width,
        int64_t ratio, Tensor& out, Tensor& channels) {
       if (out.numel() == 0) return;
       const RegionGrid grid = align_grid(scale, height, width, ratio, true, true);
       region_means(grid, image.contiguous(), boxes.contiguous(), out);
       write_channels(grid, channels);
     });
OP("torchvision::_ps_roi_align_backward")
    .impl([](const Tensor& grad, const Tensor& boxes, const Tensor&, double scale, int64_t rows, int64_t columns,
             int64_t ratio, int64_t batch, int64_t channels, int64_t height, int64_t width) {
      const RegionGrid grid = align_grid(scale, rows, columns, ratio, true, true);
      return image_gradient(
          "ps_roi_align_backward", grad, boxes, grid, Dims{batch, channels, height, width},
          [&](const Tensor& g, const Tensor& b, const Tensor& out) { region_means_backward(grid, g, b, out); });
    });

// --- roi_pool

RegionGrid average_grid(double scale, int64_t height, int64_t width) { return {scale, height, width, 0, false, true}; }

OP("torchvision::roi_pool")
    .infer([](const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width) {
      const TensorMeta meta = result_meta("roi_pool", image, boxes, {scale, height, width});
      check(image.size(2) * image.size(3) <= INT32_MAX, "roi_pool(): planes of ", image.size(2), " x ", image.size(3),
            " are too large");
      return with_places(meta);
    })
    .gradient([](const GradArgs& args) -> std::vector<Tensor> {
      const auto& in = args.inputs;
      const Dims sizes = in[0].to_tensor().sizes();
      std::vector<Tensor> gradients(in.size());
      if (!args.grad_outputs[0].defined()) return gradients;
      gradients[0] = ops::torchvision__roi_pool_backward(
          args.grad_outputs[0], in[1].to_tensor(), args.outputs[1].to_tensor(), ops::unbox<double>(in[2]),
          in[3].to_int(), in[4].to_int(), sizes[0], sizes[1], sizes[2], sizes[3]);
      return gradients;
    })
    .saves("rois, result1");
IMPL("torchvision::roi_pool", kCPU,
     [](const KernelContext&, const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width,
        Tensor& out, Tensor& places) {
       if (out.numel() == 0) return;
       region_maxima({scale, height, width}, image.contiguous(), boxes.contiguous(), out, places);
     });
OP("torchvision::_roi_pool_backward")
    .impl([](const Tensor& grad, const Tensor& boxes, const Tensor& places, double scale, int64_t rows, int64_t columns,
             int64_t batch, int64_t channels, int64_t height, int64_t width) {
      const RegionGrid grid{scale, rows, columns};
      check(places.dtype() == DType::kInt32 && places.sizes() == grad.sizes(),
            "roi_pool_backward(): expected an argmax of int32 of shape ", grad.sizes());
      return image_gradient("roi_pool_backward", grad, boxes, grid, Dims{batch, channels, height, width},
                            [&](const Tensor& g, const Tensor& b, const Tensor& out) {
                              region_maxima_backward(grid, g, b, places.contiguous(), out);
                            });
    });

OP("torchvision::ps_roi_pool")
    .infer([](const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width) {
      return with_places(result_meta("ps_roi_pool", image, boxes, average_grid(scale, height, width)));
    })
    .gradient([](const GradArgs& args) -> std::vector<Tensor> {
      const auto& in = args.inputs;
      const Dims sizes = in[0].to_tensor().sizes();
      std::vector<Tensor> gradients(in.size());
      if (!args.grad_outputs[0].defined()) return gradients;
      gradients[0] = ops::torchvision__ps_roi_pool_backward(
          args.grad_outputs[0], in[1].to_tensor(), args.outputs[1].to_tensor(), ops::unbox<double>(in[2]),
          in[3].to_int(), in[4].to_int(), sizes[0], sizes[1], sizes[2], sizes[3]);
      return gradients;
    })
    .saves("rois");
IMPL("torchvision::ps_roi_pool", kCPU,
     [](const KernelContext&, const Tensor& image, const Tensor& boxes, double scale, int64_t height, int64_t width,
        Tensor& out, Tensor& channels) {
       if (out.numel() == 0) return;
       const RegionGrid grid = average_grid(scale, height, width);
       region_averages(grid, image.contiguous(), boxes.contiguous(), out);
       write_channels(grid, channels);
     });
OP("torchvision::_ps_roi_pool_backward")
    .impl([](const Tensor& grad, const Tensor& boxes, const Tensor&, double scale, int64_t rows, int64_t columns,
             int64_t batch, int64_t channels, int64_t height, int64_t width) {
      const RegionGrid grid = average_grid(scale, rows, columns);
      return image_gradient(
          "ps_roi_pool_backward", grad, boxes, grid, Dims{batch, channels, height, width},
          [&](const Tensor& g, const Tensor& b, const Tensor& out) { region_averages_backward(grid, g, b, out); });
    });

// --- nms

// The largest first; equal scores keep their order.
Tensor order_of(const Tensor& scores) {
  const ops::Op& sort = ops::get_op("aten::sort.stable");
  return ops::run(sort, ops::bind(sort, {scores, true, int64_t{0}, true}))[1].to_tensor();
}

Tensor nms(const Tensor& boxes, const Tensor& scores, double threshold) {
  check(boxes.ndim() == 2, "boxes should be a 2d tensor, got ", boxes.ndim(), "D");
  check(boxes.size(1) == 4, "boxes should have 4 elements in dimension 1, got ", boxes.size(1));
  check(scores.ndim() == 1, "scores should be a 1d tensor, got ", scores.ndim(), "D");
  check(boxes.size(0) == scores.size(0), "boxes and scores should have same number of elements in dimension 0, got ",
        boxes.size(0), " and ", scores.size(0));
  check(boxes.dtype() == scores.dtype(), "dets should have the same type as scores");
  check(boxes.dtype() == DType::kFloat32 || boxes.dtype() == DType::kFloat64, "nms(): not implemented for ",
        name_of(boxes.dtype()));
  if (boxes.size(0) == 0) return ops::empty(Dims{0}, {.dtype = DType::kInt64, .device = boxes.device()});
  const Tensor order = order_of(scores);
  const Tensor keep = Tensor::empty(Dims{boxes.size(0)}, DType::kInt64, boxes.device());
  const int64_t count = suppress_overlaps(boxes.contiguous(), order.contiguous(), threshold, keep);
  return ops::narrow(keep, 0, 0, count);
}
OP("torchvision::nms").impl(nms).dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
