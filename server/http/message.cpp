#include "server/http/message.h"

#include <string_view>

namespace tensord::server {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return status < 400 ? "OK" : "Error";
  }
}

void put_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

uint64_t HttpAnswer::size_bytes() const {
  uint64_t bytes = 0;
  for (const HttpPiece& piece : body) bytes += piece.size_bytes();
  return bytes;
}

uint64_t HttpAnswer::uncharged_bytes() const {
  uint64_t bytes = 0;
  for (const HttpPiece& piece : body) bytes += piece.is_charged ? 0 : piece.size_bytes();
  return bytes;
}

HttpAnswer HttpAnswer::no_room(const std::string& reason) {
  HttpAnswer answer = text(429, "{\"error\":\"" + reason + "\"}");
  answer.type = "application/json";
  answer.headers.push_back({"Retry-After", "1"});
  return answer;
}

HttpAnswer HttpAnswer::text(int status, std::string body) {
  HttpAnswer answer{.status = status};
  if (!body.empty()) answer.body.push_back({std::move(body)});
  return answer;
}

std::string format_head(const HttpAnswer& answer, HttpFraming framing, bool keeps_alive,
                        std::span<const HttpHeader> more) {
  std::string out = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  out.append(reason_phrase(answer.status)).append("\r\n");
  if (!answer.type.empty()) put_header(out, "Content-Type", answer.type);
  for (const HttpHeader& header : answer.headers) put_header(out, header.name, header.value);
  for (const HttpHeader& header : more) put_header(out, header.name, header.value);
  if (framing == HttpFraming::kLength) put_header(out, "Content-Length", std::to_string(answer.size_bytes()));
  if (framing == HttpFraming::kChunks) put_header(out, "Transfer-Encoding", "chunked");
  put_header(out, "Connection", keeps_alive ? "keep-alive" : "close");
  return out += "\r\n";
}

}  // namespace tensord::server
