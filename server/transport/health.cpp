#include "server/transport/health.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "server/transport/open_stream.h"

namespace tensord::server {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// How late a watcher may learn of a change.
constexpr auto kWatchInterval = std::chrono::milliseconds(200);

// Serves as long as the process answers: what probes of liveness ask for, which a model that fails must not fail.
constexpr const char* kLiveService = "grpc.health.v1.Health";

void check_health(const ServerState& state, const HealthCheckRequest& request, HealthCheckResponse& response) {
  const auto status = health_of(state, request.service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    fail(ErrorCode::kNotFound, "no service or model '", request.service(), "'");
  }
  response.set_status(status);
}

// Writes the status when it changed, then sleeps on an alarm; ends when the client goes or
// the server drains. Owns itself.
class WatchCall {
 public:
  WatchCall(ServerState& state, HealthRpcs& service, OpenStreams& streams, CallQueue queue)
      : state_(state), service_(service), streams_(streams), live_(queue), queue_(queue) {
    context_.AsyncNotifyWhenDone(done_.tag());
    service_.RequestWatch(&context_, &bytes_, &writer_, queue_.queue, queue_.queue, arrived_.tag());
  }

 private:
  void on_arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    new WatchCall(state_, service_, streams_, queue_);
    const grpc::Status opened = open_stream(streams_, queue_, CallGroup::kHealth, &context_);
    if (!opened.ok()) {
      end(opened);
      return;
    }
    try {
      RequestLimits::Admission admission = queue_.limits->hold(bytes_.Length());
      HealthCheckRequest request;
      read_message(bytes_, *queue_.limits, admission, request);
      name_ = request.service();
      on_time(true);
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void on_time(bool) {
    const auto status = health_of(state_, name_);
    if (last_ != status) {
      last_ = status;
      HealthCheckResponse response;
      response.set_status(status);
      writer_.Write(to_byte_buffer(response), written_.tag());
    } else if (is_over_ || state_.is_draining) {
      end(grpc::Status(grpc::StatusCode::CANCELLED, "the watch has ended"));
    } else {
      sleep();
    }
  }

  void on_written(bool ok) {
    if (!ok || state_.is_draining) {
      end(grpc::Status(grpc::StatusCode::CANCELLED, "the watch has ended"));
    } else {
      sleep();
    }
  }

  void sleep() { alarm_.Set(queue_.queue, std::chrono::system_clock::now() + kWatchInterval, woken_.tag()); }

  void end(const grpc::Status& status) { writer_.Finish(status, finished_.tag()); }

  void on_done(bool) {
    is_over_ = true;
    release();
  }

  void on_finished(bool) { release(); }

  void release() {
    if (events_left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    streams_.remove(&context_);
    delete this;
  }

  ServerState& state_;
  HealthRpcs& service_;
  OpenStreams& streams_;
  LiveCall live_;
  CallQueue queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;
  std::string name_;  // the service that is watched
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  grpc::Alarm alarm_;
  std::optional<HealthCheckResponse::ServingStatus> last_;
  std::atomic<bool> is_over_{false};
  std::atomic<int> events_left_{2};  // done and finished
  MemberTag<WatchCall> arrived_{this, &WatchCall::on_arrived};
  MemberTag<WatchCall> written_{this, &WatchCall::on_written};
  MemberTag<WatchCall> woken_{this, &WatchCall::on_time};
  MemberTag<WatchCall> done_{this, &WatchCall::on_done};
  MemberTag<WatchCall> finished_{this, &WatchCall::on_finished};
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

void wait_health_calls(ServerState& state, HealthRpcs& service, OpenStreams& streams, CallQueue queue) {
  wait_unary<HealthCheckRequest, HealthCheckResponse>(
      queue, CallGroup::kHealth, TENSORD_START(service, Check),
      [&state](const auto& request, auto& response) { check_health(state, request, response); });
  new WatchCall(state, service, streams, queue);
}

}  // namespace tensord::server
