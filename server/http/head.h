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

// The head of a request, checked by the parser: names and values are what HTTP allows.
struct HttpHead {
  std::string method;  // "GET"
  std::string path;    // of the target, without the query, with %-escapes resolved
  std::vector<HttpHeader> headers;
  std::optional<uint64_t> content_length;
  bool is_chunked = false;
  bool is_version_1_0 = false;
  bool keeps_alive = true;
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
  // The first header of this name, in whatever case; empty: there is none.
  std::string_view header(std::string_view name) const;
};

bool is_same_name(std::string_view a, std::string_view b);  // header names, whatever their case

inline constexpr size_t kMaxHeadBytes = 8192;

// What came of a head's bytes: the head, or the status of the answer that refuses it.
struct ParsedHead {
  HttpHead head;
  int status = 0;  // 0: it is well
  std::string reason;
};

// `bytes` are a head with the empty line at its end. Refuses whatever two readers could understand differently: two
// lengths, a length and chunks, other codings than chunks.
ParsedHead parse_head(std::string_view bytes);

}  // namespace tensord::server
