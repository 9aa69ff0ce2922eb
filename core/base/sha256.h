#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensord {

// SHA-256 (FIPS 180-4) of bytes that come in pieces: what `sha256sum` prints. For records that somebody checks later,
// not for keys. Not thread-safe.
class Sha256 {
 public:
  void add(std::string_view bytes);
  // 64 hexadecimal digits. Nothing can be added afterwards.
  std::string finish();

 private:
  void add_block(const unsigned char* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  size_t filled_ = 0;  // bytes of block_
  uint64_t size_bytes_ = 0;
};

}  // namespace tensord
