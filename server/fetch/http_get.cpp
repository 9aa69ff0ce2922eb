#include "server/fetch/http_get.h"

#include <httplib.h>

#include <algorithm>
#include <charconv>

#include "core/base/ascii.h"

namespace tensord::server {
namespace {

constexpr int kConnectSecs = 30, kReadSecs = 60;

bool is_same_field(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return to_ascii_lower(x) == to_ascii_lower(y); });
}

bool is_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

// "host", "host:80" or "[::1]:80". The library takes other texts as a whole for a host without TLS.
bool is_authority(std::string_view text) {
  const bool is_ipv6 = text.starts_with('[');
  const size_t end = std::min(text.find(is_ipv6 ? ']' : ':'), text.size());
  const std::string_view host = is_ipv6 ? text.substr(1, end - 1) : text.substr(0, end);
  const std::string_view rest = text.substr(std::min(is_ipv6 ? end + 1 : end, text.size()));
  const bool is_plain = std::ranges::all_of(
      host, [&](char c) { return is_ascii_alnum(c) || c == '-' || c == '.' || c == '_' || (is_ipv6 && c == ':'); });
  return !host.empty() && is_plain && (!is_ipv6 || end < text.size()) &&
         (rest.empty() || (rest.front() == ':' && is_port(rest.substr(1))));
}

// Whether a reference is absolute; the "://" of a path's query does not make it so.
bool has_scheme(const std::string& reference) {
  const size_t end = reference.find_first_of(":/?#");
  return end != std::string::npos && reference[end] == ':';
}

// httplib has decoded the %XX of a header. In a Location, what no URL may contain is encoded again; encoded '&', '+',
// '%' and '/' of a query stay decoded.
std::string with_encoded_specials(const std::string& location) {
  constexpr std::string_view kNotInUrls = "\"<>\\^`{|}";
  std::string out;
  for (const char c : location) {
    const bool is_special = c <= 0x20 || c >= 0x7f || kNotInUrls.find(c) != std::string_view::npos;
    out += is_special ? percent_encoded({&c, 1}) : std::string(1, c);
  }
  return out;
}

// "a/b/../c" of a relative reference; more ".." than folders end at the root.
std::string without_dots(const std::string& path) {
  std::vector<std::string> kept;
  size_t at = 1;
  while (at <= path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    const bool is_last = end == path.size();
    if (part == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (part != "." && !(part.empty() && !is_last)) {
      kept.push_back(part);
    }
    at = end + 1;
  }
  std::string out;
  for (const std::string& part : kept) out += "/" + part;
  return out.empty() ? "/" : out;
}

}  // namespace

HttpUrl parse_http_url(const std::string& text) {
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
  const size_t scheme_end = text.find("://");
  HttpUrl url;
  url.scheme = text.substr(0, std::min(scheme_end, text.size()));
  check(is_plain && (url.scheme == "http" || url.scheme == "https"), "'", text.substr(0, text.find('?')),
        "': expected http://HOST/… or https://HOST/… without spaces");
  const size_t begin = scheme_end + 3, end = std::min(text.find_first_of("/?", begin), text.size());
  url.authority = text.substr(begin, end - begin);
  url.target = text.substr(end);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  check(is_authority(url.authority), url.scheme,
        "://…: expected a host, perhaps with a port, without user name and password");
  check(url.target.find('#') == std::string::npos, url.printable(), ": has a fragment (#…)");
  return url;
}

HttpUrl resolve_http_url(const HttpUrl& base, const std::string& reference) {
  if (has_scheme(reference)) return parse_http_url(reference);
  if (reference.starts_with("//")) return parse_http_url(base.scheme + ":" + reference);
  if (reference.starts_with('/')) return parse_http_url(base.origin() + reference);
  const size_t query = std::min(reference.find('?'), reference.size());
  const std::string path = base.path();
  if (query == 0) return parse_http_url(base.origin() + path + reference);
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  return parse_http_url(base.origin() + without_dots(folder + reference.substr(0, query)) + reference.substr(query));
}

std::string percent_encoded(std::string_view text, bool with_slashes) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool is_kept =
        is_ascii_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && !with_slashes);
    if (is_kept) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

std::string HttpReply::field(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (is_same_field(key, name)) return value;
  }
  return {};
}

std::optional<uint64_t> HttpReply::content_length() const {
  const std::string text = field("Content-Length");
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
}

std::string HttpReply::strong_etag() const {
  const std::string text = field("ETag");
  if (text.size() < 3 || text.front() != '"' || text.back() != '"') return {};
  return text.substr(1, text.size() - 2);
}

HttpReply http_get(const HttpUrl& url, const HttpFields& fields, const std::function<bool(const HttpReply&)>& on_head,
                   const std::function<bool(std::string_view)>& on_bytes) {
  httplib::Client client(url.origin());
  client.set_connection_timeout(kConnectSecs);
  client.set_read_timeout(kReadSecs);
  client.set_follow_location(false);
  client.set_decompress(false);
  client.set_url_encode(false);  // the target is encoded already, and may be signed
  client.enable_server_certificate_verification(true);
  httplib::Headers headers{{"Accept-Encoding", "identity"}, {"User-Agent", "tensord/" TENSORD_VERSION}};
  for (const auto& [name, value] : fields) headers.emplace(name, value);
  HttpReply reply;
  bool was_ended = false;
  const auto take_head = [&](const httplib::Response& response) {
    reply.status = response.status;
    for (const auto& [name, value] : response.headers) {
      reply.fields.emplace_back(name, is_same_field(name, "Location") ? with_encoded_specials(value) : value);
    }
    was_ended = !on_head(reply);
    return !was_ended;
  };
  const auto take_bytes = [&](const char* bytes, size_t count) {
    was_ended = !on_bytes({bytes, count});
    return !was_ended;
  };
  const httplib::Result result = client.Get(url.target, headers, take_head, take_bytes);
  if (!result && !was_ended) {
    throw TransientHttpError(ErrorCode::kUnavailable,
                             concat(url.printable(), ": ", httplib::to_string(result.error())));
  }
  return reply;
}

}  // namespace tensord::server
