#include "server/transport/access/http_access.h"

#include <absl/strings/escaping.h>

#include <string_view>

#include "core/base/error.h"
#include "server/web/routes.h"

namespace tensord::server {
namespace {

constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";

std::string token_of(std::string_view authorization) {
  if (authorization.starts_with(kBearer)) return std::string(authorization.substr(kBearer.size()));
  if (!authorization.starts_with(kBasic)) return {};
  const std::string_view encoded = authorization.substr(kBasic.size());
  std::string decoded;
  if (!absl::Base64Unescape({encoded.data(), encoded.size()}, &decoded)) return {};
  const size_t colon = decoded.find(':');
  return colon == std::string::npos ? std::string() : decoded.substr(colon + 1);
}

// A browser asks for a password where it opens a page, but not for each request that a page's script makes.
HttpAnswer needs_token(const HttpHead& head) {
  HttpAnswer refused =
      HttpAnswer::text(401, "a token of the server is needed: 'Authorization: Bearer TOKEN', or as a password\n");
  const bool is_from_script = head.header("Sec-Fetch-Dest") == "empty";
  refused.headers.push_back(
      {"WWW-Authenticate", is_from_script ? "Bearer realm=\"tensord\"" : "Basic realm=\"tensord\", charset=\"UTF-8\""});
  return refused;
}

HttpAnswer as_json(HttpAnswer answer, const std::string& error) {
  answer.type = "application/json";
  answer.body.clear();
  answer.body.push_back({concat("{\"error\":\"", error, "\"}")});
  return answer;
}

}  // namespace

std::optional<HttpAnswer> refuse_http(const AccessPolicy& access, const HttpHead& head) {
  if (is_health_path(head.path)) return std::nullopt;
  switch (access.find_token(token_of(head.header("Authorization")), CallGroup::kStatistics)) {
    case TokenTable::Answer::kOpen: return std::nullopt;
    case TokenTable::Answer::kOtherGroups: return HttpAnswer::text(403, "the token is not for calls of 'statistics'\n");
    case TokenTable::Answer::kUnknownToken: break;
  }
  return needs_token(head);
}

std::optional<HttpAnswer> refuse_call(const AccessPolicy& access, const HttpHead& head, CallGroup group) {
  const AccessPolicy::Rule* rule = access.http_rule(group);
  if (rule && !is_same_secret(head.header(rule->header), rule->value)) {
    return as_json({.status = 403}, concat("This API is restricted, expecting header '", rule->header, "'"));
  }
  if (!access.needs_token(group)) return std::nullopt;
  switch (access.find_token(token_of(head.header("Authorization")), group)) {
    case TokenTable::Answer::kOpen: return std::nullopt;
    case TokenTable::Answer::kOtherGroups:
      return as_json({.status = 403}, concat("the token is not for calls of '", to_string(group), "'"));
    case TokenTable::Answer::kUnknownToken: break;
  }
  return as_json(needs_token(head), "expecting header 'authorization: Bearer TOKEN' with a token of the server");
}

}  // namespace tensord::server
