#include "core/jit/importers/pt2/json.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] { jit::pt2::parse_json(fuzz::text_of(data, size), "input"); });
}
