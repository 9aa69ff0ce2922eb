#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

struct HttpHeader {
  std::string name, value;
};

// A validated request head: names and values are legal HTTP.
struct HttpHead {
  std::string method;  // "GET"
  std::string path;    // the target without its query, percent-decoded
  std::vector<HttpHeader> headers;
  std::optional<uint64_t> content_length;
  bool is_chunked = false;
  bool is_version_1_0 = false;
  bool keeps_alive = true;
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
  // The first header of this name, ignoring case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

bool is_same_name(std::string_view a, std::string_view b);  // compares header names, ignoring case

inline constexpr size_t kMaxHeadBytes = 8192;

// The head, or the status of its rejection.
struct ParsedHead {
  HttpHead head;
  int status = 0;  // 0: valid
  std::string reason;
};

// `bytes`: a head including the empty line. Rejects everything that two parsers could interpret differently: two
// lengths, a length together with chunks, other transfer codings.
ParsedHead parse_head(std::string_view bytes);

}  // namespace tensord::server
