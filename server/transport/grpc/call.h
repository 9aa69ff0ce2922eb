#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <concepts>
#include <functional>
#include <mutex>
#include <set>

#include "core/base/sanitizer_order.h"
#include "core/base/work_thread.h"
#include "server/executor/requests/status.h"
#include "server/transport/access/access.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/grpc/message_bytes.h"

namespace tensord::server {

// What a completion queue gives back: one event of one call. Events of a call may be handled by several threads at the
// same time, and while the thread that started the operation is still where it did so.
class EventTag {
 public:
  virtual ~EventTag() = default;
  // For gRPC, with the operation that ends with the event.
  void* tag() {
    sanitizer_release(this);
    return this;
  }
  static EventTag& of(void* tag) {
    sanitizer_acquire(tag);
    return *static_cast<EventTag*>(tag);
  }
  // `ok` false: the operation did not happen (the server is shutting down, the peer has gone).
  virtual void on_event(bool ok) = 0;
  // Its handler takes no time and waits for nothing: it goes on while all else is held up (QueueThreads).
  virtual bool is_light() const { return false; }
};

// Calls to a member function of `Call`; a call holds one for each operation it starts.
template <class Call>
class MemberTag final : public EventTag {
 public:
  MemberTag(Call* call, void (Call::*handler)(bool), bool is_light = false)
      : call_(call), handler_(handler), is_light_(is_light) {}
  void on_event(bool ok) override { (call_->*handler_)(ok); }
  bool is_light() const override { return is_light_; }

 private:
  Call* call_;
  void (Call::*handler_)(bool);
  const bool is_light_;
};

// A completion queue, and how many calls live on it. It may only be shut down when no call is left that could start an
// operation on it.
struct CallQueue {
  grpc::ServerCompletionQueue* queue;
  std::atomic<int>* live_calls;
  const AccessPolicy* access;
  RequestLimits* limits;
};

// Counts its call as alive; the first member of every call.
class LiveCall {
 public:
  explicit LiveCall(const CallQueue& on) : count_(on.live_calls) { count_->fetch_add(1, std::memory_order_relaxed); }
  ~LiveCall() {
    // The count outlives the call: whoever waits for zero also owns it.
    if (count_->fetch_sub(1, std::memory_order_acq_rel) == 1) count_->notify_all();
  }
  LiveCall(const LiveCall&) = delete;
  LiveCall& operator=(const LiveCall&) = delete;

 private:
  std::atomic<int>* count_;
};

// Streams that are open, so that a shutdown does not wait for their clients. Thread-safe.
class OpenStreams {
 public:
  // False when no new stream is taken any more; it should be ended then.
  bool add(grpc::ServerContext* context) {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) contexts_.insert(context);
    return !is_closed_;
  }
  void remove(grpc::ServerContext* context) {
    const std::lock_guard lock(mutex_);
    contexts_.erase(context);
  }
  void cancel_all() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    for (grpc::ServerContext* context : contexts_) context->TryCancel();
  }

 private:
  std::mutex mutex_;
  std::set<grpc::ServerContext*> contexts_;
  bool is_closed_ = false;
};

// A handler that may have the call wait: `waits` true, it calls `resume` later, on any thread; else it does not. It
// may throw Error, which is the answer then.
template <class Handler, class Request>
concept MayWait = requires(const Handler& handler, const Request& request, std::function<void()> resume) {
  { handler.waits(request, resume) } -> std::convertible_to<bool>;
};

// A unary call, from bytes to bytes; its handler sees messages. `Start` asks the service for the next call (a callable
// of context, request, writer, queue, tag); `Handler` fills the response or throws Error. Owns itself: made
// waiting, it makes its successor when a call arrives, and goes when that is answered.
template <class Request, class Response, class Start, class Handler>
class UnaryCall {
 public:
  static void wait(CallQueue queue, CallGroup group, WorkThread* thread, Start start, Handler handler) {
    new UnaryCall(queue, group, thread, start, handler);
  }

 private:
  UnaryCall(CallQueue queue, CallGroup group, WorkThread* thread, Start start, Handler handler)
      : live_(queue), queue_(queue), group_(group), thread_(thread), start_(start), handler_(handler) {
    start_(&context_, &bytes_, &writer_, queue_.queue, arrived_.tag());
  }

  void on_arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    wait(queue_, group_, thread_, start_, handler_);
    const grpc::Status status = admit();
    if (!status.ok()) {
      writer_.FinishWithError(status, finished_.tag());
    } else if (thread_) {
      thread_->post([this] { answer(); });
    } else {
      answer();
    }
  }

  // Its bytes count from here on, also while it waits for the thread.
  grpc::Status admit() {
    const grpc::Status access = queue_.access->check(context_, group_);
    if (!access.ok()) return access;
    try {
      admission_ = queue_.limits->hold(bytes_.Length());
    } catch (...) {
      return to_grpc_status(current_exception_status());
    }
    return {};
  }

  void answer() {
    try {
      read_message(bytes_, *queue_.limits, admission_, request_);
      // Once it waits the call may be gone.
      if constexpr (MayWait<Handler, Request>) {
        if (handler_.waits(request_, [this] { handle(); })) return;
      }
    } catch (...) {
      writer_.FinishWithError(to_grpc_status(current_exception_status()), finished_.tag());
      return;
    }
    handle();
  }

  void handle() {
    grpc::ByteBuffer answered;
    grpc::Status status;
    try {
      Response response;
      handler_(request_, response);
      answered = to_byte_buffer(response);
    } catch (...) {
      status = to_grpc_status(current_exception_status());
    }
    // After this line the call may be gone.
    if (status.ok()) {
      writer_.Finish(answered, status, finished_.tag());
    } else {
      writer_.FinishWithError(status, finished_.tag());
    }
  }

  void on_finished(bool) { delete this; }

  LiveCall live_;
  CallQueue queue_;
  const CallGroup group_;
  WorkThread* const thread_;
  Start start_;
  Handler handler_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;
  Request request_;
  RequestLimits::Admission admission_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  MemberTag<UnaryCall> arrived_{this, &UnaryCall::on_arrived, group_ == CallGroup::kHealth};
  MemberTag<UnaryCall> finished_{this, &UnaryCall::on_finished, group_ == CallGroup::kHealth};
};

// Answers calls on this queue from now on, at once. The handler takes (const Request&, Response&).
template <class Request, class Response, class Start, class Handler>
void wait_unary(CallQueue queue, CallGroup group, Start start, Handler handler) {
  UnaryCall<Request, Response, Start, Handler>::wait(queue, group, nullptr, start, handler);
}

// The same for calls that take long: their handler runs on `thread`.
template <class Request, class Response, class Start, class Handler>
void wait_slow_unary(CallQueue queue, CallGroup group, WorkThread& thread, Start start, Handler handler) {
  UnaryCall<Request, Response, Start, Handler>::wait(queue, group, &thread, start, handler);
}

// The callable that asks `service` for the next call of METHOD.
#define TENSORD_START(service, METHOD)                                                                 \
  [&rpcs = (service)](auto* context, auto* request, auto* writer, auto* completion_queue, void* tag) { \
    rpcs.Request##METHOD(context, request, writer, completion_queue, completion_queue, tag);           \
  }

}  // namespace tensord::server
