#include "core/vision/image.h"
#include "core/vision/preprocess.h"
#include "tests/fuzz/fuzz.h"

// Decodes an image, and prepares it for a model; the input's size chooses the options.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  constexpr int64_t kMaxPixels = 1 << 16;
  const auto mode = static_cast<vision::ImageMode>(size % 5);
  fuzz::may_refuse([&] {
    vision::decode_image(fuzz::text_of(data, size),
                         {.mode = mode, .apply_exif_orientation = true, .max_pixels = kMaxPixels});
  });
  vision::PreprocessOptions options{.colors = static_cast<vision::ColorOrder>(size % 3),
                                    .apply_exif_orientation = size % 2 == 0,
                                    .filter = static_cast<vision::ResampleFilter>(size % 6),
                                    .channels_last = size % 4 == 0,
                                    .max_pixels = kMaxPixels};
  if (size % 7 < 3) options.shorter_side = static_cast<int64_t>(1 + size % 50);
  if (size % 7 == 3) options.resized = vision::Size(1 + static_cast<int64_t>(size % 90), 40);
  if (size % 11 < 6) options.cropped = vision::Size(33, 1 + static_cast<int64_t>(size % 60));
  const vision::Preprocess preprocess(options);
  return fuzz::may_refuse([&] {
    const int64_t elements = preprocess.needs_of(fuzz::text_of(data, size), "image").elements;
    const Tensor image = preprocess(fuzz::text_of(data, size), "image");
    check_internal(image.numel() == elements, "an image has ", image.numel(), " elements, and ", elements,
                   " were announced");
  });
}
