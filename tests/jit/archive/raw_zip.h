#pragma once

// Zip files byte by byte, with whatever their entries claim.

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tensord::jit {

struct RawEntry {
  std::string name;
  std::string payload;
  uint32_t crc = 0;
  uint32_t size = 0;  // the claimed size
  uint16_t method = 0;
};

inline void append_number(std::string* out, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) *out += static_cast<char>(number >> (8 * i) & 0xff);
}

// A zip file with whatever the entries claim.
inline std::string raw_zip(const std::vector<RawEntry>& entries, uint32_t offset_lie = 0) {
  std::string out, directory;
  for (const RawEntry& entry : entries) {
    std::string common;
    append_number(&common, 0, 2);
    append_number(&common, entry.method, 2);
    append_number(&common, 0, 4);
    append_number(&common, entry.crc, 4);
    append_number(&common, entry.payload.size(), 4);
    append_number(&common, entry.size, 4);
    append_number(&common, entry.name.size(), 2);
    append_number(&common, 0, 2);
    directory += std::string("PK\1\2\x14\0\x14\0", 8) + common + std::string(10, '\0');
    append_number(&directory, out.size() + offset_lie, 4);
    directory += entry.name;
    out += std::string("PK\3\4\x14\0", 6) + common + entry.name + entry.payload;
  }
  const size_t begin = out.size();
  out += directory + std::string("PK\5\6\0\0\0\0", 8);
  append_number(&out, entries.size(), 2);
  append_number(&out, entries.size(), 2);
  append_number(&out, directory.size(), 4);
  append_number(&out, begin, 4);
  append_number(&out, 0, 2);
  return out;
}

inline std::string deflated(const std::string& text) {
  std::string out(compressBound(text.size()), '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline uint32_t crc_of(const std::string& text) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

}  // namespace tensord::jit
