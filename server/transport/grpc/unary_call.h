#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_unary_call.h>

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/work_thread.h"
#include "server/executor/requests/status.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/grpc/message_bytes.h"

namespace tensord::server {

// A handler that may let the call wait: if it sets `waits`, it calls `resume` later, on any thread. It may throw Error,
// which becomes the answer.
template <class Handler, class Request>
concept MayWait = requires(const Handler& handler, const Request& request, std::function<void()> resume) {
  { handler.waits(request, resume) } -> std::convertible_to<bool>;
};

// A handler that looks at who calls.
template <class Handler, class Request, class Response>
concept SeesClient =
    std::invocable<Handler&, const Request&, Response&, const grpc::ServerContext&, const AccessPolicy&>;

// A unary call, from bytes to bytes; its handler sees messages. `Start` requests the next call from the service (a
// callable of context, request, writer, queue, tag). `Handler` fills the response or throws Error.
template <class Request, class Response, class Start, class Handler>
class UnaryCall final : public GrpcCall {
 public:
  UnaryCall(const CallQueue& queue, CallGroup group, WorkThread* thread, Start start, Handler handler)
      : GrpcCall(queue, {group}), group_(group), thread_(thread), start_(start), handler_(handler) {}

 private:
  void ask(void* tag) override { start_(&context(), &bytes_, &writer_, queue().queue, tag); }

  std::shared_ptr<GrpcCall> successor() const override {
    return std::make_shared<UnaryCall>(queue(), group_, thread_, start_, handler_);
  }

  void accept() override {
    try {
      // The request's bytes are charged from here on, also while it waits for the thread.
      admission_ = queue().limits->hold(bytes_.Length());
    } catch (...) {
      refuse(to_grpc_status(current_exception_status()));
      return;
    }
    if (thread_) {
      thread_->post([this] { answer(); });
    } else {
      answer();
    }
  }

  // Once Finish was started the call may be destroyed, except on the thread that handles one of its events.
  void refuse(const grpc::Status& status) override { writer_.FinishWithError(status, finish_tag()); }

  void answer() {
    try {
      read_message(bytes_, *queue().limits, admission_, request_);
      // Once it waits, the call may be destroyed.
      if constexpr (MayWait<Handler, Request>) {
        if (handler_.waits(request_, [this] { handle(); })) return;
      }
    } catch (...) {
      refuse(to_grpc_status(current_exception_status()));
      return;
    }
    handle();
  }

  void handle() {
    grpc::ByteBuffer answered;
    grpc::Status status;
    try {
      Response response;
      if constexpr (SeesClient<Handler, Request, Response>)
        handler_(request_, response, std::as_const(context()), *queue().access);
      else
        handler_(request_, response);
      // Small answers are always sent, so that probes are answered.
      if (const uint64_t bytes = response.ByteSizeLong(); bytes > kSmallMessageBytes) admission_.grow(bytes);
      answered = to_byte_buffer(response);
    } catch (...) {
      status = to_grpc_status(current_exception_status());
    }
    if (status.ok()) {
      writer_.Finish(answered, status, finish_tag());
    } else {
      refuse(status);
    }
  }

  const CallGroup group_;
  WorkThread* const thread_;
  Start start_;
  Handler handler_;
  grpc::ByteBuffer bytes_;
  Request request_;
  RequestLimits::Admission admission_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context()};
};

// Answers calls on this queue immediately. The handler takes (const Request&, Response&).
template <class Request, class Response, class Start, class Handler>
void wait_unary(const CallQueue& queue, CallGroup group, Start start, Handler handler) {
  GrpcCall::wait_for<UnaryCall<Request, Response, Start, Handler>>(queue, group, nullptr, start, handler);
}

// For slow calls: their handler runs on `thread`.
template <class Request, class Response, class Start, class Handler>
void wait_slow_unary(const CallQueue& queue, CallGroup group, WorkThread& thread, Start start, Handler handler) {
  GrpcCall::wait_for<UnaryCall<Request, Response, Start, Handler>>(queue, group, &thread, start, handler);
}

// The callable that requests the next call of METHOD from `service`.
#define TENSORD_START(service, METHOD)                                                                 \
  [&rpcs = (service)](auto* context, auto* request, auto* writer, auto* completion_queue, void* tag) { \
    rpcs.Request##METHOD(context, request, writer, completion_queue, completion_queue, tag);           \
  }

}  // namespace tensord::server
