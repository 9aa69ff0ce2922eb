#include "core/jit/archive/zip.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  const fuzz::InputFile file(data, size);
  return fuzz::may_refuse([&] {
    const auto zip = jit::ZipArchive::open(file.path(), {.max_inflated_bytes = 16 << 20, .max_entries = 1 << 12});
    for (const auto& entry : zip->entries()) {
      zip->read(entry);
      zip->storage(entry);
    }
  });
}
