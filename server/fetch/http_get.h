#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

// One HTTP or HTTPS exchange.
namespace tensord::server {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpUrl {
  std::string scheme;     // "http" or "https"
  std::string authority;  // "host" or "host:port", "[::1]:80"
  std::string target;     // path and query, percent-encoded, at least "/"

  std::string origin() const { return scheme + "://" + authority; }
  std::string path() const { return target.substr(0, target.find('?')); }
  // Without the query, which may be a secret, for messages.
  std::string printable() const { return origin() + path(); }
};

// Throws Error{kInvalidArgument} for another scheme, for user names, fragments, spaces, control characters and what is
// no host or port.
HttpUrl parse_http_url(const std::string& text);
// What a Location or Link header of an answer from `base` means.
HttpUrl resolve_http_url(const HttpUrl& base, const std::string& reference);
// Percent-encodes everything but unreserved characters (RFC 3986), and slashes unless `with_slashes`.
std::string percent_encoded(std::string_view text, bool with_slashes = false);

struct HttpReply {
  int status = 0;
  HttpFields fields;

  // The first field of this name, ignoring case; empty if there is none.
  std::string field(std::string_view name) const;
  std::optional<uint64_t> content_length() const;
  // A strong ETag, without quotes; empty if there is none.
  std::string strong_etag() const;
};

// Connecting failed, or the connection ended early; another try may succeed.
class TransientHttpError : public Error {
 public:
  using Error::Error;
};

// The time to connect, to answer with a header, and to bring 1 KiB a second on average; 60 s unless set. Set it before
// the first call.
void set_fetch_timeout(std::chrono::seconds timeout);

// Sends GET. `on_head` gets status and fields before the body, `on_bytes` the body in pieces; either ends the exchange
// by returning false, which is no error. Verifies certificates by the system's authorities, or by the file that
// SSL_CERT_FILE names. Follows no redirects. Throws TransientHttpError{kUnavailable}, and Error{kDataLoss} for an
// answer that is no HTTP or has too long a header.
HttpReply http_get(const HttpUrl& url, const HttpFields& fields, const std::function<bool(const HttpReply&)>& on_head,
                   const std::function<bool(std::string_view)>& on_bytes);

}  // namespace tensord::server
