// Boost.Beast needs <utility> first in C++20.
#include <utility>
//
#include <algorithm>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>
#include <optional>

#include "server/fetch/http_get.h"

#include "core/base/ascii.h"
#include "server/fetch/connection.h"

namespace tensord::server {
namespace {

namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

std::chrono::seconds g_timeout{60};
constexpr size_t kMaxHeadBytes = 64 << 10;
constexpr int kMaxInterimReplies = 8;  // 100 Continue, 103 Early Hints …
constexpr size_t kPieceBytes = 64 << 10;
constexpr size_t kMinBytesPerSecond = 1 << 10;

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

// In a Location, what no URL may contain is encoded; what is encoded already stays as it is.
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

// One request and its answer on a connection of its own.
class Get {
 public:
  explicit Get(const HttpUrl& url) : url_(url), connection_(url, until()), piece_(kPieceBytes) {}

  void send(const HttpFields& fields) {
    std::string text =
        concat("GET ", url_.target, " HTTP/1.1\r\nHost: ", url_.authority,
               "\r\nConnection: close\r\nAccept-Encoding: identity\r\nUser-Agent: tensord/", TENSORD_VERSION, "\r\n");
    for (const auto& [name, value] : fields) {
      const bool is_plain = std::ranges::none_of(value, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
      check(is_plain, url_.printable(), ": the value of '", name, "' has a line break");
      text += concat(name, ": ", value, "\r\n");
    }
    connection_.send(text + "\r\n", until());
  }

  HttpReply read_head() {
    const Clock::time_point end = until();
    for (int i = 0; i <= kMaxInterimReplies; ++i) {
      parser_.emplace();
      parser_->header_limit(kMaxHeadBytes);
      parser_->body_limit(UINT64_MAX);
      while (!parser_->is_header_done()) {
        if (!parse()) receive(end);
      }
      if (parser_->get().result_int() / 100 != 1) return reply();
    }
    fail_answer(concat("more than ", kMaxInterimReplies, " interim answers (1xx)"));
  }

  // Ends before the end if `on_bytes` returns false.
  void read_body(const std::function<bool(std::string_view)>& on_bytes) {
    Clock::time_point end = until();
    size_t in_time = 0;
    while (!parser_->is_done()) {
      auto& body = parser_->get().body();
      body.data = piece_.data();
      body.size = piece_.size();
      const bool made_progress = parse();
      const size_t count = piece_.size() - body.size;
      if (count > 0 && !on_bytes({piece_.data(), count})) return;
      in_time += count;
      if (in_time >= kMinBytesPerSecond * static_cast<size_t>(g_timeout.count())) {
        end = until();
        in_time = 0;
      }
      if (!made_progress && !parser_->is_done()) receive(end);
    }
  }

 private:
  static Clock::time_point until() { return Clock::now() + g_timeout; }

  [[noreturn]] void fail_transient(const std::string& what) const {
    throw TransientHttpError(ErrorCode::kUnavailable, concat(url_.printable(), ": ", what));
  }

  [[noreturn]] void fail_answer(const std::string& what) const {
    fail(ErrorCode::kDataLoss, url_.printable(), ": the answer is no HTTP that is read here: ", what);
  }

  // Feeds the parser what was received; returns false if it needs more.
  bool parse() {
    if (raw_.empty()) return false;
    boost::beast::error_code error;
    parser_->eager(parser_->is_header_done());
    const size_t count = parser_->put(boost::asio::const_buffer(raw_.data(), raw_.size()), error);
    raw_.erase(0, count);
    if (error == http::error::need_more) return false;
    if (error && error != http::error::need_buffer) fail_answer(error.message());
    return count > 0;
  }

  void receive(Clock::time_point end) {
    // A line, or trailers, which the parser takes as a whole.
    if (raw_.size() >= 2 * kMaxHeadBytes) fail_answer("a line is too long");
    char bytes[16 << 10];
    const size_t count = connection_.receive(bytes, sizeof(bytes), end);
    raw_.append(bytes, count);
    if (count > 0) return;
    boost::beast::error_code error;
    if (parser_->got_some()) parser_->put_eof(error);  // which asserts that something came
    if (error || !parser_->is_done()) fail_transient("Connection closed before the end of the answer");
  }

  HttpReply reply() const {
    HttpReply out;
    out.status = static_cast<int>(parser_->get().result_int());
    for (const auto& field : parser_->get()) {
      const std::string name(field.name_string()), value(field.value());
      out.fields.emplace_back(name, is_same_field(name, "Location") ? with_encoded_specials(value) : value);
    }
    return out;
  }

  const HttpUrl& url_;
  FetchConnection connection_;
  std::string raw_;          // received, not parsed
  std::vector<char> piece_;  // of the body
  std::optional<http::response_parser<http::buffer_body>> parser_;
};

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

void set_fetch_timeout(std::chrono::seconds timeout) { g_timeout = timeout; }

HttpReply http_get(const HttpUrl& url, const HttpFields& fields, const std::function<bool(const HttpReply&)>& on_head,
                   const std::function<bool(std::string_view)>& on_bytes) {
  Get get(url);
  get.send(fields);
  HttpReply reply = get.read_head();
  if (on_head(reply)) get.read_body(on_bytes);
  return reply;
}

}  // namespace tensord::server
