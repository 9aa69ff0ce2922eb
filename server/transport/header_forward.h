#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/executor/request.h"

namespace re2 {
class RE2;
}

namespace tensord::server {

// Makes parameters of a request from the headers it came with. Immutable and thread-safe.
class HeaderForward {
 public:
  // `pattern`: see InferOptions. Throws Error{kInvalidArgument} when it is no regular expression.
  explicit HeaderForward(const std::string& pattern);
  ~HeaderForward();

  // Headers of gRPC itself stay out, and what is not UTF-8. A header given twice counts with its first value; a
  // parameter of the client goes before a header.
  void add(const grpc::ServerContextBase& context, ParameterMap& parameters) const;

 private:
  std::unique_ptr<const re2::RE2> pattern_;  // null: none are wanted
};

}  // namespace tensord::server
