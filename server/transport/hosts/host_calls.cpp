#include "server/transport/hosts/host_calls.h"

#include <grpcpp/alarm.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>

#include "server/training/training_service.h"
#include "server/transport/hosts/host_wire.h"

namespace tensord::server {
namespace {

namespace rpc = hosts::v1;
using namespace std::chrono_literals;

constexpr auto kPingInterval = 500ms;
// A host that says nothing for so long is gone. Jobs have a time of their own.
constexpr auto kGone = 30s;
constexpr size_t kPieceBytes = 1 << 20;
// Orders that wait for a host that does not read; each is of a few kilobytes.
constexpr size_t kMaxWaiting = 4096;

// "ipv4:10.0.0.7:51234" → "10.0.0.7". A Unix socket is of this host.
std::string address_of(std::string peer) {
  if (peer.starts_with("unix")) return "127.0.0.1";
  const size_t colon = peer.find(':');
  peer.erase(0, colon == std::string::npos ? 0 : colon + 1);
  peer.erase(std::min(peer.rfind(':'), peer.size()));
  for (const char* escaped : {"%5B", "%5D"}) {
    if (const size_t at = peer.find(escaped); at != std::string::npos) peer.erase(at, 3);
  }
  std::erase(peer, '[');
  std::erase(peer, ']');
  return peer;
}

// A host's stream. Owns itself while an operation of it is under way.
class JoinCall : public std::enable_shared_from_this<JoinCall> {
 public:
  static void wait(HostCalls& calls, CallQueue queue) {
    const auto call = std::shared_ptr<JoinCall>(new JoinCall(calls, queue));
    const std::lock_guard lock(call->mutex_);
    call->self_ = call;
    call->under_way_ = 2;  // done, if it arrives at all, and arrived
    call->context_.AsyncNotifyWhenDone(call->done_.tag());
    calls.rpcs.RequestJoin(&call->context_, &call->stream_, queue.queue, queue.queue, call->arrived_.tag());
  }

 private:
  // What the registry has of it.
  class Link final : public HostLink {
   public:
    explicit Link(std::weak_ptr<JoinCall> call) : call_(std::move(call)) {}
    void send(const HostOrder& order) override {
      if (const auto call = call_.lock()) call->send(order);
    }
    void close(const Error& reason) override {
      if (const auto call = call_.lock()) call->close(to_grpc_status(to_status(reason)));
    }

   private:
    const std::weak_ptr<JoinCall> call_;
  };

  JoinCall(HostCalls& calls, CallQueue queue) : calls_(calls), live_(queue), queue_(queue) {}

  void on_arrived(bool ok) {
    const auto alive = shared_from_this();
    if (!ok) {
      const std::lock_guard lock(mutex_);
      self_.reset();
      return;
    }
    wait(calls_, queue_);
    const grpc::Status status = queue_.access->check(context_, CallGroup::kTrainingHosts);
    const std::lock_guard lock(mutex_);
    if (!status.ok()) {
      finish(status);
    } else {
      read();
      sleep();
    }
    end_operation();
  }

  void on_read(bool ok) {
    const auto alive = shared_from_this();
    try {
      if (ok) take();
    } catch (...) {
      close(to_grpc_status(current_exception_status()));
    }
    const std::lock_guard lock(mutex_);
    if (!ok) {
      finish(grpc::Status(grpc::StatusCode::CANCELLED, "the host has ended its stream"));
    } else if (!is_finished_) {
      read();
    }
    end_operation();
  }

  void take() {
    RequestLimits::Admission admission = queue_.limits->hold(bytes_.Length());
    rpc::HostReport message;
    read_message(bytes_, *queue_.limits, admission, message);
    bytes_.Clear();
    HostReport report = to_report(message);
    if (host_) {
      check(!std::holds_alternative<HostInfo>(report), "hello: was said before");
      host_->receive(std::move(report));
      return;
    }
    auto* info = std::get_if<HostInfo>(&report);
    check(info != nullptr, "hello: must be the first report");
    info->address = address_of(context_.peer());
    auto joined = calls_.registry().join(std::move(*info), std::make_shared<Link>(weak_from_this()));
    {
      const std::lock_guard lock(mutex_);
      host_ = std::move(joined);
    }
    send(WelcomeOrder{});
  }

  void send(const HostOrder& order) {
    rpc::HostOrder message;
    to_message(order, message);
    const std::lock_guard lock(mutex_);
    if (is_finished_) return;
    if (waiting_.size() >= kMaxWaiting) {
      context_.TryCancel();
      return;
    }
    waiting_.push_back(to_byte_buffer(message));
    write_next();
  }

  void close(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (is_finished_ || closing_) return;
    closing_ = status;
    write_next();
  }

  void on_written(bool ok) {
    const auto alive = shared_from_this();
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (!ok) {
      finish(closing_.value_or(grpc::Status(grpc::StatusCode::CANCELLED, "the host has gone")));
    } else {
      write_next();
    }
    end_operation();
  }

  void on_time(bool) {
    const auto alive = shared_from_this();
    const std::lock_guard lock(mutex_);
    const auto silence = host_ ? host_->silence() : std::chrono::steady_clock::now() - made_;
    if (silence > kGone) context_.TryCancel();
    if (!is_finished_) {
      if (host_ && waiting_.empty() && !is_writing_) {
        waiting_.push_back(to_byte_buffer(rpc::HostOrder()));
        write_next();
      }
      sleep();
    }
    end_operation();
  }

  void on_done(bool) {
    const auto alive = shared_from_this();
    const std::lock_guard lock(mutex_);
    finish(grpc::Status(grpc::StatusCode::CANCELLED, "the host has gone"));
    end_operation();
  }

  void on_finished(bool) {
    const auto alive = shared_from_this();
    const std::lock_guard lock(mutex_);
    end_operation();
  }

  // All below with the mutex.
  void read() {
    ++under_way_;
    stream_.Read(&bytes_, read_.tag());
  }
  void sleep() {
    ++under_way_;
    alarm_.Set(queue_.queue, std::chrono::system_clock::now() + kPingInterval, woken_.tag());
  }
  void write_next() {
    if (is_writing_ || is_finished_) return;
    if (waiting_.empty()) {
      if (closing_) finish(*closing_);
      return;
    }
    is_writing_ = true;
    ++under_way_;
    stream_.Write(waiting_.front(), written_.tag());
    waiting_.pop_front();
  }
  void finish(const grpc::Status& status) {
    if (is_finished_) return;
    waiting_.clear();
    if (is_writing_) {  // the status comes after it
      closing_ = status;
      return;
    }
    is_finished_ = true;
    alarm_.Cancel();
    ++under_way_;
    stream_.Finish(status, finished_.tag());
    left_ = status.error_message();
  }
  void end_operation() {
    if (--under_way_ > 0) return;
    if (host_) calls_.registry().leave(host_, left_);
    self_.reset();
  }

  HostCalls& calls_;
  LiveCall live_;
  CallQueue queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  grpc::Alarm alarm_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  std::mutex mutex_;                  // guards all below
  std::shared_ptr<JoinedHost> host_;  // written where reports are read
  std::shared_ptr<JoinCall> self_;
  int under_way_ = 0;  // operations
  bool is_writing_ = false, is_finished_ = false;
  std::deque<grpc::ByteBuffer> waiting_;
  std::optional<grpc::Status> closing_;
  std::string left_;
  MemberTag<JoinCall> arrived_{this, &JoinCall::on_arrived};
  MemberTag<JoinCall> read_{this, &JoinCall::on_read};
  MemberTag<JoinCall> written_{this, &JoinCall::on_written};
  MemberTag<JoinCall> woken_{this, &JoinCall::on_time};
  MemberTag<JoinCall> done_{this, &JoinCall::on_done};
  MemberTag<JoinCall> finished_{this, &JoinCall::on_finished};
};

}  // namespace

HostRegistry& HostCalls::registry() const {
  if (state.training == nullptr) {
    fail(ErrorCode::kUnimplemented, "this server does not train: it was started without --training-dir");
  }
  return state.training->hosts();
}

void wait_host_calls(HostCalls& calls, CallQueue queue) {
  JoinCall::wait(calls, queue);
  wait_slow_unary<rpc::FetchFileRequest, rpc::FetchFileResponse>(
      queue, CallGroup::kTrainingHosts, calls.thread, TENSORD_START(calls.rpcs, FetchFile),
      [&calls](const auto& request, auto& response) {
        response.set_data(calls.registry().read_shared(request.sha256(), request.offset(), kPieceBytes));
      });
}

}  // namespace tensord::server
