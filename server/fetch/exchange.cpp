#include "server/fetch/exchange.h"

#include <strings.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/log.h"

namespace tensord::server {
namespace {

constexpr int kMaxRedirects = 5;
constexpr size_t kMaxErrorBytes = 16 << 10;
constexpr size_t kMaxListingBytes = 8 << 20;  // of a page; as JSON it may take eighty times as much memory
constexpr int kListingRetries = 4;
constexpr auto kFirstPause = std::chrono::milliseconds(500), kLongestPause = std::chrono::milliseconds(15000);

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The reason in an error's body: <Message> of S3, "error" of Hugging Face.
std::string reason_in(const std::string& body) {
  for (const auto& [begin, end] : {std::pair("<Message>", "</Message>"), std::pair("\"error\":\"", "\"")}) {
    const size_t at = body.find(begin);
    if (at == std::string::npos) continue;
    const size_t from = at + std::string_view(begin).size();
    return ": " + body.substr(from, std::min(body.find(end, from), body.size()) - from);
  }
  return {};
}

[[noreturn]] void fail_status(const HttpUrl& url, const HttpReply& reply, const std::string& body) {
  const std::string text = concat(url.printable(), ": status ", reply.status, reason_in(body));
  switch (reply.status) {
    case 404:
    case 410: fail(ErrorCode::kNotFound, text);
    case 401:
    case 403: fail(ErrorCode::kFailedPrecondition, text, "; the credentials do not allow it");
    case 408:
    case 425:
    case 429: throw TransientHttpError(ErrorCode::kUnavailable, text);
    default: break;
  }
  if (reply.status >= 500) throw TransientHttpError(ErrorCode::kUnavailable, text);
  fail(ErrorCode::kUnavailable, text);
}

// Encoded bytes would be stored as they come, though they are not the file's.
void check_encoding(const HttpUrl& url, const HttpReply& reply) {
  for (const auto& [name, value] : reply.fields) {
    const bool is_transfer = strcasecmp(name.c_str(), "Transfer-Encoding") == 0;
    if (!is_transfer && strcasecmp(name.c_str(), "Content-Encoding") != 0) continue;
    if (value.empty() || strcasecmp(value.c_str(), is_transfer ? "chunked" : "identity") == 0) continue;
    fail(ErrorCode::kUnimplemented, url.printable(), ": is sent with the ", is_transfer ? "Transfer" : "Content",
         "-Encoding '", value, "', though identity was asked for");
  }
}

// Where a redirect leads. An answer over TLS must not lead to one without.
HttpUrl redirected(const HttpUrl& url, const HttpReply& reply) {
  const std::string location = reply.field("Location");
  // What S3 answers for a bucket of another region.
  const std::string region = reply.field("x-amz-bucket-region");
  check(!location.empty(), url.printable(), ": a redirect without Location",
        region.empty() ? "" : "; the bucket is in AWS_REGION " + region);
  // A fragment is for the client alone (RFC 9110, 10.2.2).
  HttpUrl next = resolve_http_url(url, location.substr(0, location.find('#')));
  check(url.scheme != "https" || next.scheme == "https", url.printable(), ": leads to ", next.printable(),
        ", which is not encrypted");
  return next;
}

}  // namespace

HttpReply exchange(const HttpUrl& url, const RemoteFiles& remote, const HttpFields& extra,
                   const std::function<bool(const HttpReply&)>& on_head,
                   const std::function<bool(std::string_view)>& on_bytes) {
  HttpUrl at = url;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    HttpFields fields = at.origin() == remote.origin ? remote.authorize(at) : HttpFields();
    fields.insert(fields.end(), extra.begin(), extra.end());
    std::string error_body;
    bool is_good = false;
    const auto take_head = [&](const HttpReply& reply) {
      is_good = reply.status == 200 || reply.status == 206 || reply.status == 416;
      if (is_good) check_encoding(at, reply);
      return is_good ? on_head(reply) : !is_redirect(reply.status);
    };
    const auto take_bytes = [&](std::string_view bytes) {
      if (is_good) return on_bytes(bytes);
      error_body += bytes.substr(0, kMaxErrorBytes - std::min(error_body.size(), kMaxErrorBytes));
      return error_body.size() < kMaxErrorBytes;
    };
    const HttpReply reply = http_get(at, fields, take_head, take_bytes);
    if (is_good) return reply;
    if (!is_redirect(reply.status)) fail_status(at, reply, error_body);
    at = redirected(at, reply);
  }
  fail(ErrorCode::kUnavailable, url.printable(), ": more than ", kMaxRedirects, " redirects");
}

void with_retries(int retries, const std::function<void()>& once) {
  auto pause = kFirstPause;
  for (int left = retries;; --left) {
    try {
      return once();
    } catch (const TransientHttpError& error) {
      if (left <= 0) throw;
      log(LogLevel::kWarning, "fetch tries again", {{"reason", std::string(error.what())}});
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

std::string get_listing(const HttpUrl& url, const RemoteFiles& remote, HttpReply* reply) {
  std::string text;
  with_retries(kListingRetries, [&] {
    text.clear();
    const HttpReply got = exchange(
        url, remote, {}, [](const HttpReply&) { return true; },
        [&](std::string_view bytes) {
          text += bytes;
          return text.size() <= kMaxListingBytes;
        });
    if (text.size() > kMaxListingBytes) {
      fail(ErrorCode::kResourceExhausted, url.printable(), ": a listing of more than ", kMaxListingBytes, " bytes");
    }
    if (reply) *reply = got;
  });
  return text;
}

}  // namespace tensord::server
