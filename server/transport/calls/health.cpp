#include "server/transport/calls/health.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "server/transport/grpc/open_stream.h"

namespace tensord::server {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Serves as long as the process answers: what probes of liveness ask for, which a model that fails must not fail.
constexpr const char* kLiveService = "grpc.health.v1.Health";

void check_health(const ServerState& state, const HealthCheckRequest& request, HealthCheckResponse& response) {
  const auto status = health_of(state, request.service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    fail(ErrorCode::kNotFound, "no service or model '", request.service(), "'");
  }
  response.set_status(status);
}

using Status = HealthCheckResponse::ServingStatus;

// Writes the status of a service whenever it has changed; ends when the client goes or the server drains. Owns itself.
class WatchCall final : public HealthWatcher {
 public:
  WatchCall(ServerState& state, HealthRpcs& service, HealthWatch& watch, OpenStreams& streams, CallQueue queue)
      : state_(state), service_(service), watch_(watch), streams_(streams), live_(queue), queue_(queue) {
    context_.AsyncNotifyWhenDone(done_.tag());
    service_.RequestWatch(&context_, &bytes_, &writer_, queue_.queue, queue_.queue, arrived_.tag());
  }

  void set_status(Status status) override {
    const std::lock_guard lock(mutex_);
    wanted_ = status;
    if (!is_writing_ && !is_ending_) write();
  }

 private:
  void on_arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    new WatchCall(state_, service_, watch_, streams_, queue_);
    const grpc::Status opened = open_stream(streams_, queue_, CallGroup::kHealth, &context_);
    if (!opened.ok()) {
      end(opened);
      release();
      return;
    }
    try {
      RequestLimits::Admission admission = queue_.limits->hold(bytes_.Length());
      HealthCheckRequest request;
      read_message(bytes_, *queue_.limits, admission, request);
      bytes_.Clear();
      watch_.add(request.service(), *this);
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
    release();
  }

  // With mutex_ held.
  void write() {
    HealthCheckResponse response;
    response.set_status(*wanted_);
    written_status_ = wanted_;
    is_writing_ = true;
    writer_.Write(to_byte_buffer(response), written_.tag());
  }

  void on_written(bool ok) {
    std::unique_lock lock(mutex_);
    is_writing_ = false;
    if (is_over_ || !ok || state_.is_draining) {
      lock.unlock();
      end(grpc::Status(grpc::StatusCode::CANCELLED, "the watch has ended"));
    } else if (wanted_ != written_status_) {
      write();
    }
  }

  void end(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_ || is_writing_) return;  // it is ended when that is written
      is_ending_ = true;
    }
    writer_.Finish(status, finished_.tag());
  }

  void on_done(bool) {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    end(grpc::Status(grpc::StatusCode::CANCELLED, "the watch has ended"));
    release();
  }

  void on_finished(bool) { release(); }

  void release() {
    if (events_left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    watch_.remove(*this);
    streams_.remove(&context_);
    delete this;
  }

  ServerState& state_;
  HealthRpcs& service_;
  HealthWatch& watch_;
  OpenStreams& streams_;
  LiveCall live_;
  CallQueue queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  std::mutex mutex_;  // guards the next
  std::optional<Status> wanted_, written_status_;
  bool is_writing_ = false, is_ending_ = false, is_over_ = false;
  // Arrived, done and finished: other threads may have the last two while the first is under way.
  std::atomic<int> events_left_{3};
  MemberTag<WatchCall> arrived_{this, &WatchCall::on_arrived, true};
  MemberTag<WatchCall> written_{this, &WatchCall::on_written, true};
  MemberTag<WatchCall> done_{this, &WatchCall::on_done, true};
  MemberTag<WatchCall> finished_{this, &WatchCall::on_finished, true};
};

}  // namespace

HealthCheckResponse::ServingStatus health_of(const ServerState& state, const std::string& service) {
  const auto serving = [](bool is_serving) {
    return is_serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  };
  if (service == kLiveService) return HealthCheckResponse::SERVING;
  if (service.empty() || service == "inference.GRPCInferenceService") return serving(state.is_ready());
  if (!state.repository.has_model(service)) return HealthCheckResponse::SERVICE_UNKNOWN;
  return serving(!state.is_draining && state.repository.is_ready(service, ""));
}

void wait_health_calls(ServerState& state, HealthRpcs& service, HealthWatch& watch, OpenStreams& streams,
                       CallQueue queue) {
  wait_unary<HealthCheckRequest, HealthCheckResponse>(
      queue, CallGroup::kHealth, TENSORD_START(service, Check),
      [&state](const auto& request, auto& response) { check_health(state, request, response); });
  new WatchCall(state, service, watch, streams, queue);
}

}  // namespace tensord::server
