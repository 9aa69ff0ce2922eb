// Color transforms.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/vision/transforms.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::vision {
namespace {

// 1 or 3 channels of an image of uint8 or a floating-point dtype.
int64_t channels_of(const Tensor& image, const char* transform) {
  const bool is_image = image.ndim() >= 3 && (image.size(-3) == 1 || image.size(-3) == 3);
  check(is_image && (is_floating(image.dtype()) || image.dtype() == DType::kUInt8), transform,
        ": expected an image [..., 1 or 3 channels, height, width] of uint8 or floats but got ", describe(image));
  return image.size(-3);
}

// factor · a + (1 - factor) · b, clamped to the range of the image's dtype.
Tensor blend(const Tensor& a, const Tensor& b, double factor, DType dtype, const char* transform) {
  check(factor >= 0, transform, ": the factor must not be below 0 but is ", factor);
  const Tensor sum = ops::add(ops::mul(a, factor), ops::mul(b, 1.0 - factor));
  return ops::clamp(sum, 0, is_floating(dtype) ? 1.0 : 255.0).to(dtype);
}

// Rotates a pixel's hue by `turn`. The hue is in [0, 1); the largest and the smallest channel give the value and the
// saturation.
void turn_hue(float& r, float& g, float& b, float turn) {
  const float max = std::max({r, g, b}), min = std::min({r, g, b}), range = max - min;
  const bool is_gray = max == min;
  const float saturation = range / (is_gray ? 1.0f : max), divisor = is_gray ? 1.0f : range;
  const float from_r = (max - r) / divisor, from_g = (max - g) / divisor, from_b = (max - b) / divisor;
  float hue = max == r ? from_b - from_g : max == g ? 2.0f + from_r - from_b : 4.0f + from_g - from_r;
  hue = std::fmod(hue / 6.0f + 1.0f, 1.0f) + turn;
  hue = std::fmod(hue, 1.0f);
  if (hue < 0) hue += 1.0f;
  const float sixth = std::floor(hue * 6.0f), f = hue * 6.0f - sixth;
  const auto kept = [](float x) { return std::clamp(x, 0.0f, 1.0f); };
  const float p = kept(max * (1.0f - saturation)), q = kept(max * (1.0f - saturation * f));
  const float t = kept(max * (1.0f - saturation * (1.0f - f)));
  switch (static_cast<int>(sixth) % 6) {
    case 0: r = max, g = t, b = p; break;
    case 1: r = q, g = max, b = p; break;
    case 2: r = p, g = max, b = t; break;
    case 3: r = p, g = q, b = max; break;
    case 4: r = t, g = p, b = max; break;
    default: r = max, g = p, b = q;
  }
}

}  // namespace

Tensor rgb_to_grayscale(const Tensor& image, int64_t num_output_channels) {
  check(num_output_channels == 1 || num_output_channels == 3, "Grayscale: num_output_channels must be 1 or 3 but is ",
        num_output_channels);
  Tensor gray = image.clone();
  if (channels_of(image, "Grayscale") == 3) {
    const auto part = [&](int64_t channel, double weight) {
      return ops::mul(ops::narrow(image, -3, channel, 1), weight);
    };
    gray = ops::add(part(0, 0.2989), part(1, 0.587));
    gray = ops::add(gray, part(2, 0.114)).to(image.dtype());
  }
  if (num_output_channels == 1) return gray;
  Dims sizes = image.sizes();
  sizes[sizes.size() - 3] = 3;
  return ops::expand(gray, sizes);
}
Tensor Grayscale::operator()(const Tensor& image) const { return rgb_to_grayscale(image, num_output_channels); }

Tensor adjust_brightness(const Tensor& image, double factor) {
  channels_of(image, "adjust_brightness");
  return blend(image, ops::zeros_like(image), factor, image.dtype(), "adjust_brightness");
}

Tensor adjust_contrast(const Tensor& image, double factor) {
  channels_of(image, "adjust_contrast");
  Tensor gray = rgb_to_grayscale(image);
  if (!is_floating(image.dtype())) gray = gray.to(DType::kFloat32);
  const Tensor mean = ops::mean(gray, Dims{-3, -2, -1}, true);
  return blend(image, mean, factor, image.dtype(), "adjust_contrast");
}

Tensor adjust_saturation(const Tensor& image, double factor) {
  if (channels_of(image, "adjust_saturation") == 1) return image;
  return blend(image, rgb_to_grayscale(image), factor, image.dtype(), "adjust_saturation");
}

Tensor adjust_hue(const Tensor& image, double factor) {
  check(factor >= -0.5 && factor <= 0.5, "adjust_hue: the factor must be from -0.5 to 0.5 but is ", factor);
  if (channels_of(image, "adjust_hue") == 1) return image;
  const DType dtype = image.dtype();
  const bool is_bytes = dtype == DType::kUInt8;
  Tensor x = image.to(DType::kFloat32).contiguous();
  x = is_bytes ? ops::div(x, 255) : x.is_same(image) || x.storage() == image.storage() ? x.clone() : x;
  const int64_t plane = image.size(-2) * image.size(-1);
  for (int64_t start = 0; start < x.numel(); start += 3 * plane) {
    float* r = x.data<float>() + start;
    for (int64_t i = 0; i < plane; ++i) turn_hue(r[i], r[i + plane], r[i + 2 * plane], static_cast<float>(factor));
  }
  // This gives each byte an equal share of [0, 1].
  return is_bytes ? ops::mul(x, 256.0 - 1e-3).to(dtype) : x.to(dtype);
}

Tensor ColorJitter::operator()(const Tensor& image) const {
  struct Change {
    double range;
    Tensor (*apply)(const Tensor&, double);
    double factor;
  };
  Change changes[] = {{brightness, adjust_brightness, 0},
                      {contrast, adjust_contrast, 0},
                      {saturation, adjust_saturation, 0},
                      {hue, adjust_hue, 0}};
  check(brightness >= 0 && contrast >= 0 && saturation >= 0 && hue >= 0 && hue <= 0.5,
        "ColorJitter: ranges must not be below 0, and hue not above 0.5");
  // torchvision draws the order first, then each factor, including those of changes that come later in the order.
  const Tensor order = ops::randperm(int64_t{4}).contiguous();
  for (Change& change : changes) {
    if (change.range == 0) continue;
    const bool is_hue = change.apply == adjust_hue;
    const Tensor one = Tensor::empty(Dims{1}, DType::kFloat32);
    ops::uniform_(one, is_hue ? -change.range : std::max(0.0, 1 - change.range),
                  is_hue ? change.range : 1 + change.range);
    change.factor = one.item_double();
  }
  Tensor out = image;
  for (int64_t i = 0; i < 4; ++i) {
    const Change& change = changes[order.data<int64_t>()[i]];
    if (change.range > 0) out = change.apply(out, change.factor);
  }
  return out;
}

}  // namespace tensord::vision
