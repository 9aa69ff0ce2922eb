#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/http/head.h"
#include "server/http/message.h"

namespace tensord::server {

// The origins whose pages may call and read answers in a browser (CORS). Immutable; thread-safe.
class AllowedOrigins {
 public:
  AllowedOrigins() = default;  // none
  // "https://app.example.org"; "*" is all. Throws Error{kInvalidArgument} for what is no origin.
  explicit AllowedOrigins(std::vector<std::string> origins);

  // What the answer to the request says to the browser; nothing where its origin is not allowed, or it has none.
  std::vector<HttpHeader> headers_for(const HttpHead& head) const;
  // The answer to a preflight, by which a browser asks whether it may send a request; none: the request is no such.
  std::optional<HttpAnswer> preflight(const HttpHead& head) const;

 private:
  std::vector<std::string> origins_;
  bool has_all_ = false;
};

}  // namespace tensord::server
