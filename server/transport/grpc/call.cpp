#include "server/transport/grpc/call.h"

#include "core/base/mutex.h"

namespace tensord::server {

bool OpenStreams::add(grpc::ServerContext* context) {
  const MutexLock lock(mutex_);
  if (!is_closed_) contexts_.insert(context);
  return !is_closed_;
}

void OpenStreams::remove(grpc::ServerContext* context) {
  const MutexLock lock(mutex_);
  contexts_.erase(context);
}

void OpenStreams::cancel_all() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  for (grpc::ServerContext* context : contexts_) context->TryCancel();
}

GrpcCall::GrpcCall(const CallQueue& queue, const Kind& kind) : count_(queue.live_calls), queue_(queue), kind_(kind) {}

GrpcCall::~GrpcCall() {
  if (kind_.streams) kind_.streams->remove(&context_);
}

void GrpcCall::wait() {
  finished_.begin();
  if (kind_.hears_end) context_.AsyncNotifyWhenDone(over_.begin());
  ask(arrived_.begin());
}

void GrpcCall::handle_arrival(bool ok) {
  if (!ok) {
    over_.call_off();  // gRPC does not report cancellation of calls that never started
    finished_.call_off();
    return;
  }
  successor()->wait();
  const grpc::Status status = admit();
  if (status.ok()) {
    accept();
  } else {
    refuse(status);
  }
}

grpc::Status GrpcCall::admit() {
  const grpc::Status status = queue_.access->check(context_, kind_.group);
  if (!status.ok() || kind_.streams == nullptr || kind_.streams->add(&context_)) return status;
  return {grpc::StatusCode::UNAVAILABLE, kServerShutsDown};
}

}  // namespace tensord::server
