#include "server/rest/json_reader.h"
#include "tests/fuzz/fuzz.h"

#include <memory>

namespace {

using tensord::server::JsonReader;

// Reads each value by its kind.
void take(JsonReader& reader) {
  switch (reader.peek()) {
    case JsonReader::Kind::kObject: return reader.object([&](const std::string&) { take(reader); });
    case JsonReader::Kind::kArray: return reader.array([&] { take(reader); });
    case JsonReader::Kind::kString: reader.string(); return;
    case JsonReader::Kind::kNumber: reader.number(); return;
    case JsonReader::Kind::kBool: reader.boolean(); return;
    case JsonReader::Kind::kNull: reader.null(); return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] {
    const std::string_view text = fuzz::text_of(data, size);
    server::JsonReader skipping(text);
    int64_t elements = 0;
    skipping.skip(&elements);
    skipping.finish();
    take(*std::make_unique<server::JsonReader>(text));
  });
}
