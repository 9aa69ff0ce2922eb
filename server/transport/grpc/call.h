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

// A completion queue and the number of calls on it. It may be shut down only when no call is left that could start an
// operation on it.
struct CallQueue {
  grpc::ServerCompletionQueue* queue;
  std::atomic<int>* live_calls;
  const AccessPolicy* access;
  RequestLimits* limits;
};

// The open streams, so that a shutdown can cancel them instead of waiting for clients. Thread-safe.
class OpenStreams {
 public:
  // Returns false if new streams are not accepted any more; the caller must end the stream.
  bool add(grpc::ServerContext* context);
  void remove(grpc::ServerContext* context);
  void cancel_all();

 private:
  Mutex mutex_;
  std::set<grpc::ServerContext*> contexts_ TENSORD_GUARDED_BY(mutex_);
  bool is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
};

// A gRPC call, from waiting for a client to its last event:
//     wait() → a client calls (and the next call waits) → accept() or refuse() → operations → one Finish.
// The call owns itself through shared_from_this(): from wait() until Finish has completed (and, with hears_end, until
// the call is over), and during every Operation. Work for the call on another thread holds a shared_from_this(), or a
// weak_ptr if it may come too late. The thread that drops the last reference destroys the call, which deregisters
// there. A call that no client used before the shutdown is destroyed without a call of its functions.
class GrpcCall : public std::enable_shared_from_this<GrpcCall> {
 public:
  // Creates a call of type T that waits for a client.
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
    OpenStreams* streams = nullptr;  // the list of open streams; null: the call ends by itself
    bool hears_end = false;          // calls on_over()
  };
  GrpcCall(const CallQueue& queue, const Kind& kind);

  // An asynchronous operation of a call with the handler of its event. At most one at a time.
  template <class Call>
  class Operation final : public EventTag {
   public:
    Operation(Call* call, void (Call::*handler)(bool)) : call_(call), handler_(handler) {}
    // The tag for gRPC. It keeps the call alive until the handler has run.
    void* begin() {
      held_ = static_cast<GrpcCall*>(call_)->shared_from_this();
      return tag();
    }
    // Releases the call if the started operation has no event.
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

  // Asks the service for the next call.
  virtual void ask(void* tag) = 0;
  // A new call of the same type.
  virtual std::shared_ptr<GrpcCall> successor() const = 0;
  // Handles the call of an authorized client. It must finish the call exactly once, now or later.
  virtual void accept() = 0;
  // Finishes the call with `status`, because the client is not authorized or the server is shutting down.
  virtual void refuse(const grpc::Status& status) = 0;
  // Called when the client has its answer or is gone (context().IsCancelled()). May run before accept(), and on another
  // thread.
  virtual void on_over() {}
  virtual void on_finished() {}

  grpc::ServerContext& context() { return context_; }
  grpc::GenericServerContext& generic_context() { return context_; }
  const CallQueue& queue() const { return queue_; }
  // The tag for the Finish of the call.
  void* finish_tag() { return finished_.tag(); }

 private:
  // Counts the live calls. The thread that waits for zero owns the counter.
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

  const Count count_;  // first member, so it is destroyed last
  const CallQueue queue_;
  const Kind kind_;
  grpc::GenericServerContext context_;  // has the name of the method if no service knows it
  Operation<GrpcCall> arrived_{this, &GrpcCall::handle_arrival};
  Operation<GrpcCall> over_{this, &GrpcCall::handle_end};
  Operation<GrpcCall> finished_{this, &GrpcCall::handle_finish};
};

}  // namespace tensord::server
