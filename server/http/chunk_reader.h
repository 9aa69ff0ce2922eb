#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace tensord::server {

// Chunks of one body, the empty last one not counted: each costs more than its bytes.
inline constexpr uint32_t kMaxChunks = 65536;

// Takes a body that comes in chunks apart. For one body.
class ChunkReader {
 public:
  ChunkReader();
  ~ChunkReader();

  enum class State { kNeedsInput, kNeedsRoom, kDone, kBroken, kTooMany };
  struct Step {
    State state;
    size_t used = 0;     // of the input
    size_t written = 0;  // into the room
  };
  // Reads `input`, whose beginning is what the step before left, and writes what it carries into `room`.
  Step read(std::string_view input, std::span<uint8_t> room);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
