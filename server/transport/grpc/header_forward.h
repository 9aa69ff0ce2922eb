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

// Makes parameters of a request from the headers it came with. Immutable and thread-safe.
class HeaderForward {
 public:
  // `pattern`: see InferOptions; `flag` is what it came by. Throws Error{kInvalidArgument} when it is no regular
  // expression.
  explicit HeaderForward(const std::string& pattern, const char* flag = "--grpc-header-forward-pattern");
  ~HeaderForward();

  // Headers of gRPC itself stay out, and what is not UTF-8. A header given twice counts with its first value; a
  // parameter of the client goes before a header.
  void add(const grpc::ServerContextBase& context, ParameterMap& parameters) const;
  // The same of one header.
  void add(std::string_view name, std::string_view text, ParameterMap& parameters) const;
  bool is_off() const { return pattern_ == nullptr; }

 private:
  std::unique_ptr<const re2::RE2> pattern_;  // null: none are wanted
};

}  // namespace tensord::server
