#include "server/transport/infer/message.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  return fuzz::may_refuse([&] {
    // In pieces, like gRPC slices.
    server::WireMessage message;
    const size_t piece = 1 + size % 61;
    for (size_t at = 0; at < size; at += piece) message.add_piece({data + at, std::min(piece, size - at)});
    server::parse_infer_message(message);
  });
}
