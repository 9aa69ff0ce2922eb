#include "core/jit/frontend/parser.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] { jit::parse_source({"input.py", std::string(fuzz::text_of(data, size))}); });
}
