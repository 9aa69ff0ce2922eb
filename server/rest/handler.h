#pragma once

#include "core/base/work_thread.h"
#include "server/http/handler.h"
#include "server/rest/infer.h"
#include "server/rest/target.h"
#include "server/transport/calls/repository_calls.h"
#include "server/web/routes.h"

namespace tensord::server {

// The HTTP port: the KServe v2 REST protocol with Triton's extensions, and what the metrics port has.
class RestHandler final : public HttpHandler {
 public:
  // Both must outlive this.
  RestHandler(ServerState& state, WebHandler& web, HttpMemoryQuota quota);

  std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  WorkThread& thread_of(RestCall call);
  void answer_later(std::shared_ptr<HttpExchange> exchange, RestTarget target);

  ServerState& state_;
  WebHandler& web_;
  // Last, as their work uses the rest. Loads and unloads wait for their models, and keep nothing else waiting.
  WorkThread work_{2};
  RepositoryThreads repository_threads_;
  RestContext context_;
};

}  // namespace tensord::server
