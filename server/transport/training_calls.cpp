#include "server/transport/training_calls.h"

#include <algorithm>

#include "core/base/error.h"
#include "server/executor/status.h"
#include "server/training/training_service.h"
#include "server/transport/grpc_status.h"
#include "server/transport/training_messages.h"

namespace tensord::server {
namespace {

using namespace training::v1;  // the messages
using Job = training::v1::Job;

// A unary call whose handler runs on the work thread. Owns itself, as UnaryCall does.
template <class Request, class Response, class Start, class Handler>
class DeferredCall {
 public:
  static void wait(TrainingCalls& calls, CallQueue queue, Start start, Handler handler) {
    new DeferredCall(calls, queue, start, handler);
  }

 private:
  DeferredCall(TrainingCalls& calls, CallQueue queue, Start start, Handler handler)
      : calls_(calls), live_(queue), queue_(queue), start_(start), handler_(handler) {
    start_(&context_, &request_, &writer_, queue_.queue, static_cast<EventTag*>(&arrived_));
  }

  void on_arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    wait(calls_, queue_, start_, handler_);
    calls_.thread.post([this] { answer(); });
  }

  void answer() {
    Response response;
    grpc::Status status;
    try {
      handler_(calls_.service(), request_, response);
    } catch (...) {
      status = to_grpc_status(current_exception_status());
    }
    // After this line the call may be gone.
    if (status.ok()) {
      writer_.Finish(response, status, static_cast<EventTag*>(&finished_));
    } else {
      writer_.FinishWithError(status, static_cast<EventTag*>(&finished_));
    }
  }

  void on_finished(bool) { delete this; }

  TrainingCalls& calls_;
  LiveCall live_;
  CallQueue queue_;
  Start start_;
  Handler handler_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  MemberTag<DeferredCall> arrived_{this, &DeferredCall::on_arrived};
  MemberTag<DeferredCall> finished_{this, &DeferredCall::on_finished};
};

template <class Request, class Response, class Start, class Handler>
void wait_deferred(TrainingCalls& calls, CallQueue queue, Start start, Handler handler) {
  DeferredCall<Request, Response, Start, Handler>::wait(calls, queue, start, handler);
}

template <class Handler>
grpc::Status guarded(const Handler& handler) {
  try {
    handler();
    return grpc::Status::OK;
  } catch (...) {
    return to_grpc_status(current_exception_status());
  }
}

void list_jobs(TrainingService& service, const ListJobsRequest& request, ListJobsResponse& response) {
  std::vector<JobState> states;
  for (const int state : request.states()) states.push_back(to_job_state(static_cast<training_rpc::JobState>(state)));
  for (const std::shared_ptr<TrainingJob>& job : service.jobs()) {
    const JobStatus status = job->status();
    const bool is_of_model = request.model().empty() || request.model() == status.spec.model.name ||
                             request.model() == status.spec.publish.model;
    const bool is_in_state = states.empty() || std::find(states.begin(), states.end(), status.state) != states.end();
    if (is_of_model && is_in_state) to_message(status, *response.add_jobs());
  }
}

}  // namespace

TrainingService& TrainingCalls::service() const {
  if (state.training == nullptr) {
    fail(ErrorCode::kUnimplemented, "this server does not train: it was started without --training-dir");
  }
  return *state.training;
}

#define TENSORD_START(METHOD)                                                             \
  [&rpcs = calls.rpcs](auto* context, auto* request, auto* writer, auto* cq, void* tag) { \
    rpcs.Request##METHOD(context, request, writer, cq, cq, tag);                          \
  }

void wait_training_calls(TrainingCalls& calls, CallQueue queue) {
  wait_unary<GetJobRequest, Job>(queue, TENSORD_START(GetJob), [&calls](const auto& request, auto& response) {
    return guarded([&] { to_message(calls.service().find(request.id())->status(), response); });
  });
  wait_unary<ListJobsRequest, ListJobsResponse>(
      queue, TENSORD_START(ListJobs), [&calls](const auto& request, auto& response) {
        return guarded([&] { list_jobs(calls.service(), request, response); });
      });
  wait_deferred<CreateJobRequest, Job>(calls, queue, TENSORD_START(CreateJob),
                                       [](TrainingService& service, const auto& request, auto& response) {
                                         to_message(service.create(to_job_spec(request.spec())), response);
                                       });
  wait_deferred<PauseJobRequest, Job>(calls, queue, TENSORD_START(PauseJob),
                                      [](TrainingService& service, const auto& request, auto& response) {
                                        to_message(service.pause(request.id()), response);
                                      });
  wait_deferred<ResumeJobRequest, Job>(calls, queue, TENSORD_START(ResumeJob),
                                       [](TrainingService& service, const auto& request, auto& response) {
                                         to_message(service.resume(request.id()), response);
                                       });
  wait_deferred<CancelJobRequest, Job>(calls, queue, TENSORD_START(CancelJob),
                                       [](TrainingService& service, const auto& request, auto& response) {
                                         to_message(service.cancel(request.id()), response);
                                       });
  wait_deferred<DeleteJobRequest, DeleteJobResponse>(
      calls, queue, TENSORD_START(DeleteJob),
      [](TrainingService& service, const auto& request, auto&) { service.remove(request.id()); });
  wait_deferred<RollbackRequest, RollbackResponse>(calls, queue, TENSORD_START(Rollback),
                                                   [](TrainingService& service, const auto& request, auto& response) {
                                                     const auto result = service.roll_back(request.model());
                                                     response.set_withdrawn_version(result.withdrawn);
                                                     response.set_served_version(result.served);
                                                   });
  wait_training_streams(calls, queue);
}

#undef TENSORD_START

}  // namespace tensord::server
