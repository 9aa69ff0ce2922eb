#pragma once

#include <array>
#include <cstdint>

namespace tensord::server {

// Random bits from the calling thread's generator.
uint64_t random_bits();

// Never all zeros, which would mean that there is none.
template <size_t N>
std::array<uint8_t, N> random_id() {
  std::array<uint8_t, N> out;
  for (size_t i = 0; i < N; i += 8) {
    const uint64_t bits = random_bits();
    for (size_t j = 0; j < 8 && i + j < N; ++j) out[i + j] = static_cast<uint8_t>(bits >> (8 * j));
  }
  out[0] |= 1;
  return out;
}

// A number for the next trace of this process.
uint64_t next_trace_id();

}  // namespace tensord::server
