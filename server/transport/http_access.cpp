#include "server/transport/http_access.h"

#include <string_view>

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

bool is_health(std::string_view path) {
  return path.starts_with("/v2/health/") || (path.starts_with("/v2/models/") && path.ends_with("/ready"));
}

}  // namespace

std::optional<HttpAnswer> refuse_http(const AccessPolicy& access, const HttpRequest& request) {
  if (is_health(request.path)) return std::nullopt;
  switch (access.find_token(token_of(request.authorization), CallGroup::kStatistics)) {
    case TokenTable::Answer::kOpen: return std::nullopt;
    case TokenTable::Answer::kOtherGroups:
      return HttpAnswer{.status = 403, .body = "the token is not for calls of 'statistics'\n"};
    case TokenTable::Answer::kUnknownToken: break;
  }
  return HttpAnswer{.status = 401,
                    .body = "a token of the server is needed: 'Authorization: Bearer TOKEN', or as a password\n",
                    .authenticate = "Basic realm=\"tensord\", charset=\"UTF-8\""};
}

}  // namespace tensord::server
