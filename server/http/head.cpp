// Boost.Beast needs <utility> first in C++20.
#include <utility>
//
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>

#include "server/http/head.h"

#include "core/base/ascii.h"

namespace tensord::server {
namespace {

namespace http = boost::beast::http;

std::string_view to_view(boost::beast::string_view text) { return {text.data(), text.size()}; }

int hex_digit(char letter) {
  if (is_ascii_digit(letter)) return letter - '0';
  const char small = to_ascii_lower(letter);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// The decoded path of a request target: "/a%20b?x=1" and "http://host/a%20b" give "/a b". Returns nullopt for a
// malformed escape or a zero byte.
std::optional<std::string> path_of(std::string_view target) {
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    const size_t slash = scheme == std::string_view::npos ? scheme : target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  target = target.substr(0, target.find_first_of("?#"));
  std::string path;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      path += target[i];
      continue;
    }
    const int high = i + 2 < target.size() ? hex_digit(target[i + 1]) : -1;
    const int low = i + 2 < target.size() ? hex_digit(target[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    path += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return path;
}

ParsedHead refuse(int status, std::string reason) {
  return {.head = {}, .status = status, .reason = std::move(reason)};
}

}  // namespace

bool is_same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (to_ascii_lower(a[i]) != to_ascii_lower(b[i])) return false;
  }
  return true;
}

std::string_view HttpHead::header(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (is_same_name(header.name, name)) return header.value;
  }
  return {};
}

ParsedHead parse_head(std::string_view bytes) {
  http::request_parser<http::buffer_body> parser;
  parser.header_limit(kMaxHeadBytes);
  parser.body_limit(std::numeric_limits<uint64_t>::max());
  boost::beast::error_code error;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::header_limit) return refuse(431, "the request's headers are too large");
  if (error && error != http::error::need_buffer) return refuse(400, error.message());
  if (!parser.is_header_done()) return refuse(400, "the request's head is incomplete");

  ParsedHead parsed;
  HttpHead& head = parsed.head;
  const auto& message = parser.get();
  head.method = std::string(to_view(message.method_string()));
  std::optional<std::string> path = path_of(to_view(message.target()));
  if (!path) return refuse(400, "the path has a wrong escape");
  head.path = std::move(*path);
  for (const auto& field : message) {
    head.headers.push_back({std::string(to_view(field.name_string())), std::string(to_view(field.value()))});
  }
  const std::string_view coding = head.header("Transfer-Encoding");
  head.is_chunked = parser.chunked();
  if (!coding.empty() && !(head.is_chunked && is_same_name(coding, "chunked"))) {
    return refuse(501, "other transfer codings than 'chunked' are not supported");
  }
  if (const auto length = parser.content_length()) head.content_length = *length;
  head.is_version_1_0 = message.version() < 11;
  head.keeps_alive = message.keep_alive();
  head.expects_continue = !head.is_version_1_0 && is_same_name(head.header("Expect"), "100-continue");
  return parsed;
}

}  // namespace tensord::server
