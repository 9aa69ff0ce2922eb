#include "core/jit/importers/onnx/asked_memory.h"
#include "core/jit/importers/onnx/proto.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] {
    const auto model = jit::onnx::read_model({data, size});
    jit::onnx::asked_bytes(model, size % 2 == 1);
  });
}
