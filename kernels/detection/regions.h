#pragma once

#include "core/tensor/tensor.h"
#include "kernels/cuda/layers/columns_job.h"

// Values of an image in boxes: torchvision's roi_align, roi_pool and their position-sensitive forms. Shared by the
// operators and their loops.
namespace tensord::kernels {

struct RegionGrid {
  double scale;  // from the boxes' units to pixels
  int64_t height, width;
  int64_t samples = 0;  // along each side of a bin; 0: as many as it has pixels
  bool is_aligned = false;
  bool is_position_sensitive = false;  // each bin has channels of its own
};

// The functions take images [N, C, H, W], boxes [K, 5] (image, x1, y1, x2, y2) and results [K, C of out, height,
// width], all of them dense and of one of float32 and float64. Boxes that are not finite, or of an image that is not
// there, are an Error{kInvalidArgument}.
//
// Means of bilinear samples (He et al., "Mask R-CNN", 2017).
void region_means(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out);
// Adds to `of_image`.
void region_means_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& of_image);
// The largest pixel of each bin and its place in the plane, int32; 0 and -1 where a bin has none (Girshick, "Fast
// R-CNN", 2015).
void region_maxima(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out,
                   const Tensor& places);
void region_maxima_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& places,
                            const Tensor& of_image);
// Means over the pixels of each bin, in the bin's own channels (Dai et al., "R-FCN", 2016).
void region_averages(const RegionGrid& grid, const Tensor& image, const Tensor& boxes, const Tensor& out);
void region_averages_backward(const RegionGrid& grid, const Tensor& grad, const Tensor& boxes, const Tensor& of_image);

// Each of them on a CUDA device. Of a backward `image` is what is added to, and `out` the incoming gradient; `places`
// of the maxima. Wrong boxes are an error of the stream.
void regions_cuda(RegionTask task, bool is_backward, const RegionGrid& grid, const Tensor& image, const Tensor& boxes,
                  const Tensor& out, const Tensor& places);

// dets [N, 4], order [N] int64: which of them stay, in that order, when each takes away those after it whose overlap
// with it (intersection over union) is larger than the threshold. `keep` [N] int64; gives how many there are.
int64_t suppress_overlaps(const Tensor& boxes, const Tensor& order, double threshold, const Tensor& keep);
// On a CUDA device; the host waits for the number.
int64_t suppress_overlaps_cuda(const Tensor& boxes, const Tensor& order, double threshold, const Tensor& keep);

}  // namespace tensord::kernels
