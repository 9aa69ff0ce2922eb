#pragma once

#include <memory>
#include <optional>

#include "server/http/exchange.h"

namespace tensord::server {

// Handles the requests of a port. Called on the loops' threads, which serve other connections too, so it must not block
// or throw.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called with the head. An answer rejects the request before its body is received; otherwise `plan` tells how to
  // receive it.
  virtual std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) = 0;
  // Called with the complete request.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
};

}  // namespace tensord::server
