#include "server/transport/calls/health.h"

#include <grpcpp/support/async_stream.h>

#include <memory>
#include <optional>

#include "core/base/mutex.h"

#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// A service name for liveness probes: it serves while the process responds, whatever the state of the models.
constexpr const char* kLiveService = "grpc.health.v1.Health";

void check_health(const ServerState& state, const HealthCheckRequest& request, HealthCheckResponse& response) {
  const auto status = health_of(state, request.service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    fail(ErrorCode::kNotFound, "no service or model '", request.service(), "'");
  }
  response.set_status(status);
}

using Status = HealthCheckResponse::ServingStatus;

// Streams the status of a service whenever it changes. Ends when the client disconnects or the server drains.
class WatchCall final : public GrpcCall, public HealthWatcher {
 public:
  WatchCall(const CallQueue& queue, HealthRpcs& service, HealthWatch& watch)
      : GrpcCall(queue, {CallGroup::kHealth, nullptr, /*hears_end=*/true}), service_(service), watch_(watch) {}
  ~WatchCall() override { watch_.remove(*this); }

  void set_status(Status status) override {
    const MutexLock lock(mutex_);
    wanted_ = status;
    if (!is_writing_ && !is_ending_) write();
  }
  void close() override {
    MutexLock lock(mutex_);
    is_closing_ = true;
    wanted_ = HealthCheckResponse::NOT_SERVING;
    if (is_writing_ || is_ending_) return;
    if (written_status_ != wanted_) return write();
    lock.unlock();
    end(kEnded);
  }

 private:
  static inline const grpc::Status kEnded{grpc::StatusCode::CANCELLED, "the watch has ended"};

  void ask(void* tag) override {
    service_.RequestWatch(&context(), &bytes_, &writer_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override {
    return std::make_shared<WatchCall>(queue(), service_, watch_);
  }

  void accept() override {
    try {
      RequestLimits::Admission admission = queue().limits->hold(bytes_.Length());
      HealthCheckRequest request;
      read_message(bytes_, *queue().limits, admission, request);
      bytes_.Clear();
      watch_.add(request.service(), *this);
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void refuse(const grpc::Status& status) override { end(status); }

  void write() TENSORD_REQUIRES(mutex_) {
    HealthCheckResponse response;
    response.set_status(*wanted_);
    written_status_ = wanted_;
    is_writing_ = true;
    writer_.Write(to_byte_buffer(response), written_.begin());
  }

  void on_written(bool) {
    MutexLock lock(mutex_);
    is_writing_ = false;
    if (is_over_ || (is_closing_ && wanted_ == written_status_)) {
      lock.unlock();
      end(kEnded);
    } else if (wanted_ != written_status_) {
      write();
    }
  }

  void end(const grpc::Status& status) {
    {
      const MutexLock lock(mutex_);
      if (is_ending_ || is_writing_) return;  // the end is handled once the write completes
      is_ending_ = true;
    }
    writer_.Finish(status, finish_tag());
  }

  void on_over() override {
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
    }
    end(kEnded);
  }

  HealthRpcs& service_;
  HealthWatch& watch_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context()};
  Mutex mutex_;
  std::optional<Status> wanted_ TENSORD_GUARDED_BY(mutex_), written_status_ TENSORD_GUARDED_BY(mutex_);
  bool is_writing_ TENSORD_GUARDED_BY(mutex_) = false, is_ending_ TENSORD_GUARDED_BY(mutex_) = false;
  bool is_over_ TENSORD_GUARDED_BY(mutex_) = false, is_closing_ TENSORD_GUARDED_BY(mutex_) = false;
  Operation<WatchCall> written_{this, &WatchCall::on_written};
};

}  // namespace

HealthCheckResponse::ServingStatus health_of(const ServerState& state, const std::string& service) {
  const auto serving = [](bool is_serving) {
    return is_serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  };
  if (service == kLiveService) return HealthCheckResponse::SERVING;
  if (service.empty() || service == "inference.GRPCInferenceService") return serving(state.is_ready());
  if (!state.repository.has_model(service)) return HealthCheckResponse::SERVICE_UNKNOWN;
  return serving(!state.is_leaving && state.repository.is_ready(service, ""));
}

void wait_health_calls(ServerState& state, HealthRpcs& service, HealthWatch& watch, CallQueue queue) {
  wait_unary<HealthCheckRequest, HealthCheckResponse>(
      queue, CallGroup::kHealth, TENSORD_START(service, Check),
      [&state](const auto& request, auto& response) { check_health(state, request, response); });
  GrpcCall::wait_for<WatchCall>(queue, service, watch);
}

}  // namespace tensord::server
