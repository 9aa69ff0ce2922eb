#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/executor/requests/request.h"

namespace re2 {
class RE2;
}

namespace tensord::server {

// Adds a request's headers to its parameters. Immutable and thread-safe.
class HeaderForward {
 public:
  // `pattern`: see InferOptions; `flag`: where it comes from. Throws Error{kInvalidArgument} if it is not a regular
  // expression.
  explicit HeaderForward(const std::string& pattern, const char* flag = "--grpc-header-forward-pattern");
  ~HeaderForward();

  // Skips gRPC's own headers and values that are not UTF-8. The first value of a repeated header counts. A client's
  // parameter takes precedence over a header.
  void add(const grpc::ServerContextBase& context, ParameterMap& parameters) const;
  // The same for one header.
  void add(std::string_view name, std::string_view text, ParameterMap& parameters) const;
  bool is_off() const { return pattern_ == nullptr; }

 private:
  std::unique_ptr<const re2::RE2> pattern_;  // null: forward nothing
};

}  // namespace tensord::server
