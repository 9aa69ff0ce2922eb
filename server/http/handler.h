#pragma once

#include <memory>
#include <optional>

#include "server/http/exchange.h"

namespace tensord::server {

// What a port does with requests. Called on the loops' threads, which serve other connections too: it must not wait for
// anything, and must not throw.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // A head has come. An answer refuses the request before its body is received; else `plan` says what is to be done
  // with that.
  virtual std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) = 0;
  // A request has come whole.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
};

}  // namespace tensord::server
