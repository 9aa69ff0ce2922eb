#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tensord::server {

// A file of the status page (server/web/page, and Chart.js), compiled in by cmake/embed_page.cmake.
struct PageFile {
  std::string_view path;  // "/" or "/page/NAME"
  const char* type;       // for Content-Type
  std::span<const uint8_t> gzipped;
};
inline constexpr size_t kMaxPageFileBytes = 1 << 20;  // unpacked

// Null: there is none.
const PageFile* find_page_file(std::string_view path);

}  // namespace tensord::server
