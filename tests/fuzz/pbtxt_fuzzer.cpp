#include "server/config/pbtxt/model_config_text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  const std::string text(fuzz::text_of(data, size));
  fuzz::may_refuse([&] { server::parse_model_config(text, "config.pbtxt"); });
  return fuzz::may_refuse([&] { server::parse_model_config_json(text, "config"); });
}
