#pragma once

#include "core/tensor/tensor.h"
#include "core/vision/transforms.h"

namespace tensord::vision {

// The filters of Pillow's Image.resize. All but kNearest antialias when they shrink an image.
enum class ResampleFilter { kNearest, kBox, kBilinear, kHamming, kBicubic, kLanczos };

// Resizes a contiguous uint8 image [channels, height, width] with the same numbers as Pillow's Image.resize:
// fixed-point weights, and bytes between the two passes. (vision::resize has torchvision's numbers for tensors
// instead.) Throws Error{kInvalidArgument} for another tensor or sizes below 1. Thread-safe.
Tensor resample(const Tensor& image, Size size, ResampleFilter filter);

}  // namespace tensord::vision
