#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/http/head.h"

namespace tensord::server {

// A part of an answer's body: a string, followed by memory that `owner` keeps alive.
struct HttpPiece {
  std::string text;
  std::span<const uint8_t> memory = {};
  std::shared_ptr<const void> owner = nullptr;
  bool is_charged = false;  // `owner` already charges it to the quota
  size_t size_bytes() const { return text.size() + memory.size(); }
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";  // empty: no header Content-Type
  std::vector<HttpHeader> headers = {};            // besides type, length and connection
  std::vector<HttpPiece> body = {};
  bool ends_connection = false;

  uint64_t size_bytes() const;
  uint64_t uncharged_bytes() const;                      // of the body
  static HttpAnswer text(int status, std::string body);  // text/plain
  // 429 as JSON: the quota is exhausted. `reason` must not need JSON escapes.
  static HttpAnswer no_room(const std::string& reason);
};

// How the end of an answer's body is marked.
enum class HttpFraming { kLength, kChunks, kUntilEnd };

// The answer's head including the empty line, with its headers and `more`. Headers must not come from clients, because
// they are not validated.
std::string format_head(const HttpAnswer& answer, HttpFraming framing, bool keeps_alive,
                        std::span<const HttpHeader> more = {});

// Bodies and answers up to this size are not charged, so that probes are always answered.
inline constexpr uint64_t kUncountedBytes = 4096;

// Charges bytes of bodies in flight, what they are parsed to, and unsent answers, until the result is released. Throws
// Error{kResourceExhausted}, with the figure, if the quota is exhausted. Thread-safe.
using HttpMemoryQuota = std::function<std::shared_ptr<const void>(uint64_t size_bytes)>;

}  // namespace tensord::server
