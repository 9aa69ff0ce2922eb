#include "server/transport/http_access.h"

#include <string_view>

#include "server/web/routes.h"

namespace tensord::server {
namespace {

constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";

// Of base64. Empty where it is none.
std::string decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char letter : text) {
    const size_t digit = kDigits.find(letter);
    if (digit == std::string_view::npos) return {};
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

std::string token_of(std::string_view authorization) {
  if (authorization.starts_with(kBearer)) return std::string(authorization.substr(kBearer.size()));
  if (!authorization.starts_with(kBasic)) return {};
  const std::string user_and_password = decode_base64(authorization.substr(kBasic.size()));
  const size_t colon = user_and_password.find(':');
  return colon == std::string::npos ? std::string() : user_and_password.substr(colon + 1);
}

}  // namespace

std::optional<HttpAnswer> refuse_http(const AccessPolicy& access, const HttpHead& head) {
  if (is_health_path(head.path)) return std::nullopt;
  switch (access.find_token(token_of(head.header("Authorization")), CallGroup::kStatistics)) {
    case TokenTable::Answer::kOpen: return std::nullopt;
    case TokenTable::Answer::kOtherGroups: return HttpAnswer::text(403, "the token is not for calls of 'statistics'\n");
    case TokenTable::Answer::kUnknownToken: break;
  }
  HttpAnswer refused =
      HttpAnswer::text(401, "a token of the server is needed: 'Authorization: Bearer TOKEN', or as a password\n");
  refused.headers.push_back({"WWW-Authenticate", "Basic realm=\"tensord\", charset=\"UTF-8\""});
  return refused;
}

}  // namespace tensord::server
