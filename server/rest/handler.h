#pragma once

#include "core/base/work_thread.h"
#include "server/http/handler.h"
#include "server/rest/infer.h"
#include "server/rest/target.h"
#include "server/transport/calls/repository_calls.h"
#include "server/web/routes.h"

namespace tensord::server {

// Handler of the HTTP port: the KServe v2 REST protocol with Triton's extensions, plus the paths of the metrics port.
class RestHandler final : public HttpHandler {
 public:
  // `state` and `web` must outlive this object.
  RestHandler(ServerState& state, WebHandler& web, HttpMemoryQuota quota);

  std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  WorkThread& thread_of(RestCall call);
  void answer_later(std::shared_ptr<HttpExchange> exchange, RestTarget target);

  ServerState& state_;
  WebHandler& web_;
  // Declared last, because their tasks use the other members. Loads and unloads block on their models, so they have
  // threads of their own.
  WorkThread work_{2};
  RepositoryThreads repository_threads_;
  RestContext context_;
};

}  // namespace tensord::server
