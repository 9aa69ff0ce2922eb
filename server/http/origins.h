#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/http/head.h"
#include "server/http/message.h"

namespace tensord::server {

// The origins whose pages may send requests and read answers in a browser (CORS). Immutable and thread-safe.
class AllowedOrigins {
 public:
  AllowedOrigins() = default;  // none
  // "https://app.example.org"; "*" allows all. Throws Error{kInvalidArgument} for an invalid origin.
  explicit AllowedOrigins(std::vector<std::string> origins);

  // The CORS headers of the answer to a request, with Vary for every request where the answer depends on its origin.
  std::vector<HttpHeader> headers_for(const HttpHead& head) const;
  // The answer to a CORS preflight request; none if the request is not one.
  std::optional<HttpAnswer> preflight(const HttpHead& head) const;

 private:
  std::vector<std::string> origins_;
  bool has_all_ = false;
};

}  // namespace tensord::server
