#include "core/files/idx.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  const fuzz::InputFile file(data, size);
  return fuzz::may_refuse([&] { files::read_idx(file.path()); });
}
