#include "core/vision/image.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] {
    const auto mode = static_cast<vision::ImageMode>(size % 5);
    vision::decode_image(fuzz::text_of(data, size),
                         {.mode = mode, .apply_exif_orientation = true, .max_pixels = 1 << 16});
  });
}
