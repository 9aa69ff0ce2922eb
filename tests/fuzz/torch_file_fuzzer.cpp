#include "core/jit/archive/torch_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  const fuzz::InputFile file(data, size);
  return fuzz::may_refuse([&] { jit::load_torch_file(file.path(), {.max_inflated_bytes = 16 << 20}); });
}
