#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/http/head.h"

namespace tensord::server {

// A part of an answer's body: text of its own, then memory of others, which `owner` keeps alive.
struct HttpPiece {
  std::string text;
  std::span<const uint8_t> memory = {};
  std::shared_ptr<const void> owner = nullptr;
  bool is_charged = false;  // `owner` counts it against the quota, too
  size_t size_bytes() const { return text.size() + memory.size(); }
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";  // empty: no header Content-Type
  std::vector<HttpHeader> headers = {};            // beside type, length and connection
  std::vector<HttpPiece> body = {};
  bool ends_connection = false;

  uint64_t size_bytes() const;
  uint64_t uncharged_bytes() const;                      // of the body
  static HttpAnswer text(int status, std::string body);  // text/plain
  // 429, as JSON: the quota has no room. `reason` has nothing that JSON escapes.
  static HttpAnswer no_room(const std::string& reason);
};

// How the body of an answer is delimited.
enum class HttpFraming { kLength, kChunks, kUntilEnd };

// The answer's head, to the empty line, with its headers and `more`. Headers must not come from clients: they are not
// checked.
std::string format_head(const HttpAnswer& answer, HttpFraming framing, bool keeps_alive,
                        std::span<const HttpHeader> more = {});

// Bodies and answers of at most this are not counted, so that probes are answered.
inline constexpr uint64_t kUncountedBytes = 4096;

// Room for so many more bytes of bodies under way, what they become and answers not sent; counted until it is let go.
// Throws Error{kResourceExhausted}, with the figure, when there is none. Thread-safe.
using HttpMemoryQuota = std::function<std::shared_ptr<const void>(uint64_t size_bytes)>;

}  // namespace tensord::server
