#include "server/http/origins.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace tensord::server {

AllowedOrigins::AllowedOrigins(std::vector<std::string> origins) : origins_(std::move(origins)) {
  for (const std::string& origin : origins_) {
    const size_t scheme = origin.find("://");
    const bool is_origin = scheme != std::string::npos && scheme > 0 && scheme + 3 < origin.size() &&
                           origin.find('/', scheme + 3) == std::string::npos;
    check(origin == "*" || is_origin, "'", origin,
          "' is not an origin: scheme, host and port, as https://app.example.org");
    has_all_ = has_all_ || origin == "*";
  }
}

std::vector<HttpHeader> AllowedOrigins::headers_for(const HttpHead& head) const {
  if (origins_.empty()) return {};
  const std::string_view origin = head.header("Origin");
  if (has_all_ && origin.empty()) return {};
  if (has_all_) return {{"Access-Control-Allow-Origin", "*"}, {"Access-Control-Expose-Headers", "*"}};
  const auto found = std::ranges::find(origins_, origin);
  // Caches keep the answer for another origin apart from this one, without Access-Control-Allow-Origin, too.
  if (found == origins_.end()) return {{"Vary", "Origin"}};
  return {{"Access-Control-Allow-Origin", *found}, {"Access-Control-Expose-Headers", "*"}, {"Vary", "Origin"}};
}

std::optional<HttpAnswer> AllowedOrigins::preflight(const HttpHead& head) const {
  if (head.method != "OPTIONS" || head.header("Access-Control-Request-Method").empty()) return std::nullopt;
  const std::string_view origin = head.header("Origin");
  if (origin.empty() || (!has_all_ && std::ranges::find(origins_, origin) == origins_.end())) return std::nullopt;
  HttpAnswer answer{.status = 200, .type = ""};
  answer.headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                    {"Access-Control-Allow-Headers", "*, Authorization"},  // not in the wildcard
                    {"Access-Control-Max-Age", "600"}};
  return answer;
}

}  // namespace tensord::server
