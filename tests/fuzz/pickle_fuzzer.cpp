#include "core/jit/archive/pickle.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] {
    jit::UnpickleContext context;
    context.source = "pickle";
    context.storage = [](const std::string&) { return allocate_storage(64, {}); };
    context.has_numpy = size % 2 == 1;
    context.infer_container_types = size % 3 == 1;
    jit::unpickle(fuzz::text_of(data, size), context);
  });
}
