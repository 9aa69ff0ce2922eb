#include "server/connections/frame_reader.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  // Split in two ways: the frames are the same.
  const auto count = [&](size_t piece) {
    server::FrameReader reader(size % 2 == 0);
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += piece) {
      reader.read(data + at, std::min(piece, size - at),
                  [&](const server::FrameHead& head) { sum = sum * 31 + head.length + head.type + head.error_code; });
    }
    return sum;
  };
  if (count(size + 1) != count(1 + size % 5)) std::abort();
  return 0;
}
