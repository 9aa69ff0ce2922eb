#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <set>
#include <utility>

#include "core/base/mutex.h"

#include "server/transport/access/access.h"
#include "server/transport/grpc/event_tag.h"

namespace tensord::server {

class RequestLimits;

inline constexpr const char* kServerShutsDown = "GRPC server is shutting down and has stopped accepting new requests.";

// A completion queue, and how many calls live on it. It may only be shut down when no call is left that could start an
// operation on it.
struct CallQueue {
  grpc::ServerCompletionQueue* queue;
  std::atomic<int>* live_calls;
  const AccessPolicy* access;
  RequestLimits* limits;
};

// Streams that are open, so that a shutdown does not wait for their clients. Thread-safe.
class OpenStreams {
 public:
  // False when no new stream is taken any more; it should be ended then.
  bool add(grpc::ServerContext* context);
  void remove(grpc::ServerContext* context);
  void cancel_all();

 private:
  Mutex mutex_;
  std::set<grpc::ServerContext*> contexts_ TENSORD_GUARDED_BY(mutex_);
  bool is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
};

// One gRPC call, from its wait for a client to the last event of it:
//   wait() → a client calls (the next one waits from then on) → accept() or refuse() → operations → its one Finish.
// It lives as long as something of it is outstanding: it holds itself from its wait until its Finish has ended (and,
// where it is told so, the call is over), and during every Operation. Whoever else works for it, on another thread,
// holds it with shared_from_this(), or a weak_ptr that may come too late. The call owns itself
// through shared_from_this(): it is destroyed on the thread that drops the last reference, and deregisters there. A
// call that no client used before the shutdown is destroyed without any of its functions being called.
class GrpcCall : public std::enable_shared_from_this<GrpcCall> {
 public:
  // Has a call of type T wait for a client.
  template <class T, class... Args>
  static void wait_for(Args&&... args) {
    static_cast<GrpcCall&>(*std::make_shared<T>(std::forward<Args>(args)...)).wait();
  }
  virtual ~GrpcCall();
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

 protected:
  struct Kind {
    CallGroup group;
    OpenStreams* streams = nullptr;  // that it is one of; null: it ends by itself
    bool hears_end = false;          // on_over() is called
  };
  GrpcCall(const CallQueue& queue, const Kind& kind);

  // An operation of a call, ended by an event, and its handler. One at a time.
  template <class Call>
  class Operation final : public EventTag {
   public:
    Operation(Call* call, void (Call::*handler)(bool)) : call_(call), handler_(handler) {}
    // The tag for gRPC; the call is held from here to the end of the handler.
    void* begin() {
      held_ = static_cast<GrpcCall*>(call_)->shared_from_this();
      return tag();
    }
    // No event comes of what was begun.
    void call_off() { held_.reset(); }
    void on_event(bool ok) override {
      const std::shared_ptr<GrpcCall> held = std::move(held_);
      (call_->*handler_)(ok);
    }
    bool is_light() const override { return static_cast<const GrpcCall*>(call_)->kind_.group == CallGroup::kHealth; }

   private:
    Call* const call_;
    void (Call::*const handler_)(bool);
    std::shared_ptr<GrpcCall> held_;
  };

  // Asks the service for the next client.
  virtual void ask(void* tag) = 0;
  // Another of its kind.
  virtual std::shared_ptr<GrpcCall> successor() const = 0;
  // A client has called, and may. Finishes the call now or later, once.
  virtual void accept() = 0;
  // It may not, or the server is shutting down; finishes the call with `status`.
  virtual void refuse(const grpc::Status& status) = 0;
  // The client has its answer or has gone (context().IsCancelled()). May come before accept(), and on another thread.
  virtual void on_over() {}
  virtual void on_finished() {}

  grpc::ServerContext& context() { return context_; }
  grpc::GenericServerContext& generic_context() { return context_; }
  const CallQueue& queue() const { return queue_; }
  // For the Finish of the call.
  void* finish_tag() { return finished_.tag(); }

 private:
  // Counts the call as alive; whoever waits for zero owns the count.
  class Count {
   public:
    explicit Count(std::atomic<int>* live) : live_(live) { live_->fetch_add(1, std::memory_order_relaxed); }
    ~Count() {
      if (live_->fetch_sub(1, std::memory_order_acq_rel) == 1) live_->notify_all();
    }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;

   private:
    std::atomic<int>* const live_;
  };

  void wait();
  grpc::Status admit();
  void handle_arrival(bool ok);
  void handle_end(bool) { on_over(); }
  void handle_finish(bool) { on_finished(); }

  const Count count_;  // first: the last to go
  const CallQueue queue_;
  const Kind kind_;
  grpc::GenericServerContext context_;  // with the method's name, where no service knows it
  Operation<GrpcCall> arrived_{this, &GrpcCall::handle_arrival};
  Operation<GrpcCall> over_{this, &GrpcCall::handle_end};
  Operation<GrpcCall> finished_{this, &GrpcCall::handle_finish};
};

}  // namespace tensord::server
