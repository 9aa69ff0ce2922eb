#include "server/http/chunk_reader.h"
#include "server/http/head.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  const std::string_view text = fuzz::text_of(data, size);
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos || end + 4 > server::kMaxHeadBytes) return 0;
  const server::ParsedHead parsed = server::parse_head(text.substr(0, end + 4));
  if (parsed.status != 0 || !parsed.head.is_chunked) return 0;
  // The rest in pieces, as connections deliver them: leftovers of one step start the next one.
  server::ChunkReader reader;
  std::string input;
  uint8_t room[64];
  for (std::string_view rest = text.substr(end + 4); !rest.empty();) {
    const size_t piece = std::min<size_t>(rest.size(), 1 + rest.size() % 7);
    input += rest.substr(0, piece);
    rest.remove_prefix(piece);
    for (;;) {
      const auto step = reader.read(input, room);
      if (step.used > input.size() || step.written > sizeof(room)) std::abort();
      input.erase(0, step.used);
      if (step.state == server::ChunkReader::State::kNeedsInput) break;
      if (step.state != server::ChunkReader::State::kNeedsRoom) return 0;
    }
  }
  return 0;
}
