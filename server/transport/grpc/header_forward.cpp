#include "server/transport/grpc/header_forward.h"

#include <re2/re2.h>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

HeaderForward::HeaderForward(const std::string& pattern, const char* flag) {
  if (pattern.empty()) return;
  auto compiled = std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet);
  check(compiled->ok(), flag, ": ", compiled->error());
  pattern_ = std::move(compiled);
}

HeaderForward::~HeaderForward() = default;

void HeaderForward::add(const grpc::ServerContextBase& context, ParameterMap& parameters) const {
  if (!pattern_) return;
  for (const auto& [key, value] : context.client_metadata()) {
    const std::string_view name(key.data(), key.size());
    const std::string_view text(value.data(), value.size());
    const bool is_internal = name.starts_with(':') || name.starts_with("grpc-") || name.ends_with("-bin");
    if (!is_internal) add(name, text, parameters);
  }
}

void HeaderForward::add(std::string_view name, std::string_view text, ParameterMap& parameters) const {
  if (!pattern_ || !is_utf8(text) || !re2::RE2::FullMatch({name.data(), name.size()}, *pattern_)) return;
  parameters.emplace(std::string(name), std::string(text));
}

}  // namespace tensord::server
