#include "server/transport/hosts/host_calls.h"

#include <grpcpp/alarm.h>
#include <grpcpp/support/async_stream.h>

#include <chrono>
#include <deque>
#include <optional>

#include "core/base/mutex.h"

#include "server/training/training_service.h"
#include "server/transport/grpc/unary_call.h"
#include "server/transport/hosts/host_wire.h"
#include "server/transport/hosts/peer_host.h"

namespace tensord::server {
namespace {

namespace rpc = hosts::v1;
using namespace std::chrono_literals;

constexpr auto kCallPingInterval = 500ms;
// A node that is silent for this long is considered lost. Jobs have their own timeout.
constexpr auto kGone = 30s;
constexpr size_t kPieceBytes = 1 << 20;
// Maximum number of orders queued for a node that does not read; each has a few kilobytes.
constexpr size_t kMaxWaiting = 4096;

// The stream of one node.
class JoinCall final : public GrpcCall {
 public:
  JoinCall(const CallQueue& queue, HostCalls& calls)
      : GrpcCall(queue, {CallGroup::kTrainingHosts, nullptr, /*hears_end=*/true}), calls_(calls) {}
  ~JoinCall() override {
    if (host_) calls_.registry().leave(host_, left_);
  }

 private:
  // The registry's handle of the stream.
  class Link final : public HostLink {
   public:
    explicit Link(const std::shared_ptr<JoinCall>& call) : call_(call) {}
    void send(const HostOrder& order) override {
      if (const auto call = call_.lock()) call->send(order);
    }
    void close(const Error& reason) override {
      if (const auto call = call_.lock()) call->close(to_grpc_status(to_status(reason)));
    }

   private:
    const std::weak_ptr<JoinCall> call_;
  };

  void ask(void* tag) override { calls_.rpcs.RequestJoin(&context(), &stream_, queue().queue, queue().queue, tag); }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<JoinCall>(queue(), calls_); }

  void accept() override {
    const MutexLock lock(mutex_);
    if (is_finished_) return;  // it has ended already
    read();
    sleep();
  }

  void refuse(const grpc::Status& status) override {
    const MutexLock lock(mutex_);
    finish(status);
  }

  void on_read(bool ok) {
    try {
      if (ok) take();
    } catch (...) {
      close(to_grpc_status(current_exception_status()));
    }
    const MutexLock lock(mutex_);
    if (!ok) {
      finish(grpc::Status(grpc::StatusCode::CANCELLED, "the host has ended its stream"));
    } else if (!is_finished_) {
      read();
    }
  }

  void take() {
    RequestLimits::Admission admission = queue().limits->hold(bytes_.Length());
    rpc::HostReport message;
    read_message(bytes_, *queue().limits, admission, message);
    bytes_.Clear();
    HostReport report = to_report(message);
    std::shared_ptr<JoinedHost> host;
    {
      const MutexLock lock(mutex_);
      host = host_;
    }
    if (host) {
      check(!std::holds_alternative<HostInfo>(report), "hello: was said before");
      host->receive(std::move(report));
      return;
    }
    auto* info = std::get_if<HostInfo>(&report);
    check(info != nullptr, "hello: must be the first report");
    info->address = host_of_peer(context().peer());
    const auto self = std::static_pointer_cast<JoinCall>(shared_from_this());
    host = calls_.registry().join(std::move(*info), std::make_shared<Link>(self));
    {
      const MutexLock lock(mutex_);
      host_ = std::move(host);
    }
    send(WelcomeOrder{});
  }

  void send(const HostOrder& order) {
    rpc::HostOrder message;
    to_message(order, message);
    const MutexLock lock(mutex_);
    if (is_finished_) return;
    if (waiting_.size() >= kMaxWaiting) {
      context().TryCancel();
      return;
    }
    waiting_.push_back(to_byte_buffer(message));
    write_next();
  }

  void close(const grpc::Status& status) {
    const MutexLock lock(mutex_);
    if (!closing_) closing_ = status;
    write_next();
  }

  void on_written(bool ok) {
    const MutexLock lock(mutex_);
    is_writing_ = false;
    if (!ok) {
      finish(closing_.value_or(grpc::Status(grpc::StatusCode::CANCELLED, "the host has disconnected")));
    } else {
      write_next();
    }
  }

  void on_time(bool) {
    const MutexLock lock(mutex_);
    const auto silence = host_ ? host_->silence() : std::chrono::steady_clock::now() - made_;
    if (silence > kGone) context().TryCancel();
    if (!is_finished_) {
      if (!is_writing_) {
        waiting_.push_back(to_byte_buffer(rpc::HostOrder()));
        write_next();
      }
      sleep();
    }
  }

  void on_over() override { refuse(grpc::Status(grpc::StatusCode::CANCELLED, "the host has disconnected")); }

  void read() TENSORD_REQUIRES(mutex_) { stream_.Read(&bytes_, read_.begin()); }
  void sleep() TENSORD_REQUIRES(mutex_) {
    alarm_.Set(queue().queue, std::chrono::system_clock::now() + kCallPingInterval, woken_.begin());
  }
  void write_next() TENSORD_REQUIRES(mutex_) {
    if (is_writing_ || is_finished_) return;
    if (waiting_.empty()) {
      if (closing_) finish(*closing_);
      return;
    }
    is_writing_ = true;
    stream_.Write(waiting_.front(), written_.begin());
    waiting_.pop_front();
  }
  void finish(const grpc::Status& status) TENSORD_REQUIRES(mutex_) {
    if (is_finished_) return;
    waiting_.clear();
    if (is_writing_) {  // the status is sent after it
      closing_ = status;
      return;
    }
    is_finished_ = true;
    alarm_.Cancel();
    stream_.Finish(status, finish_tag());
    left_ = status.error_message();
  }

  HostCalls& calls_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context()};
  grpc::Alarm alarm_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  Mutex mutex_;
  std::shared_ptr<JoinedHost> host_ TENSORD_GUARDED_BY(mutex_);
  bool is_writing_ TENSORD_GUARDED_BY(mutex_) = false, is_finished_ TENSORD_GUARDED_BY(mutex_) = false;
  std::deque<grpc::ByteBuffer> waiting_ TENSORD_GUARDED_BY(mutex_);
  std::optional<grpc::Status> closing_ TENSORD_GUARDED_BY(mutex_);
  std::string left_ TENSORD_GUARDED_BY(mutex_);
  Operation<JoinCall> read_{this, &JoinCall::on_read};
  Operation<JoinCall> written_{this, &JoinCall::on_written};
  Operation<JoinCall> woken_{this, &JoinCall::on_time};
};

}  // namespace

HostRegistry& HostCalls::registry() const {
  if (state.training == nullptr) {
    fail(ErrorCode::kUnimplemented, "this server does not train: it was started without --training-dir");
  }
  return state.training->hosts();
}

void wait_host_calls(HostCalls& calls, CallQueue queue) {
  GrpcCall::wait_for<JoinCall>(queue, calls);
  wait_slow_unary<rpc::FetchFileRequest, rpc::FetchFileResponse>(
      queue, CallGroup::kTrainingHosts, calls.thread, TENSORD_START(calls.rpcs, FetchFile),
      [&calls](const auto& request, auto& response) {
        response.set_data(calls.registry().read_shared(request.sha256(), request.offset(), kPieceBytes));
      });
}

}  // namespace tensord::server
