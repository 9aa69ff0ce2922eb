#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace tensord::server {

// Limit of the chunks of one body, without the empty last one: each costs more than its bytes.
inline constexpr uint32_t kMaxChunks = 65536;

// Parses a chunked body. For one body.
class ChunkReader {
 public:
  ChunkReader();
  ~ChunkReader();

  enum class State { kNeedsInput, kNeedsRoom, kDone, kBroken, kTooMany };
  struct Step {
    State state;
    size_t used = 0;     // bytes of the input
    size_t written = 0;  // bytes of `room`
  };
  // Parses `input`, which starts with what the previous step left, and writes the data to `room`.
  Step read(std::string_view input, std::span<uint8_t> room);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
