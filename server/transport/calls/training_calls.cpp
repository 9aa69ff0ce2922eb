#include "server/transport/calls/training_calls.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/distributed/digest.h"
#include "server/training/training_service.h"
#include "server/transport/calls/training_messages.h"
#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using namespace training::v1;  // the protocol's messages
using Job = training::v1::Job;

constexpr size_t kOwnerDigits = 32;

// Runs `handler` with the training service on the work thread. Fails if training is off.
template <class Request, class Response, class Start, class Handler>
void wait_slow(TrainingCalls& calls, CallQueue queue, Start start, Handler handler) {
  wait_slow_unary<Request, Response>(
      queue, CallGroup::kTraining, calls.thread, start,
      [&calls, handler](const auto& request, auto& response) { handler(calls.service(), request, response); });
}

void list_jobs(TrainingService& service, const ListJobsRequest& request, ListJobsResponse& response) {
  std::vector<JobState> states;
  for (const int state : request.states()) states.push_back(to_job_state(static_cast<training_rpc::JobState>(state)));
  for (const std::shared_ptr<TrainingJob>& job : service.jobs()) {
    const JobStatus status = job->status();
    const bool is_of_model = request.model().empty() || request.model() == status.spec.model.name ||
                             request.model() == status.spec.publish.model;
    const bool is_in_state = states.empty() || std::find(states.begin(), states.end(), status.state) != states.end();
    const bool has_tags = std::ranges::all_of(request.tags(), [&](const auto& tag) {
      const auto found = status.spec.tags.find(tag.first);
      return found != status.spec.tags.end() && found->second == tag.second;
    });
    if (is_of_model && is_in_state && has_tags) to_message(status, *response.add_jobs());
  }
}

void list_hosts(TrainingService& service, ListHostsResponse& response) {
  for (const HostRegistry::Listed& listed : service.hosts().hosts()) {
    Host& host = *response.add_hosts();
    host.set_name(listed.info.name);
    host.set_address(listed.info.address);
    host.set_processes(listed.info.processes);
    host.set_is_busy(listed.is_busy);
  }
}

}  // namespace

std::string owner_of_uploads(const AccessPolicy& access, const grpc::ServerContextBase& context) {
  const std::string token = access.token_of(context, CallGroup::kTraining);
  if (token.empty()) return {};
  distributed::Digest digest;
  digest.add(token);
  return digest.finish().substr(0, kOwnerDigits);
}

TrainingService& TrainingCalls::service() const {
  if (state.training == nullptr) {
    fail(ErrorCode::kUnimplemented, "this server does not train: it was started without --training-dir");
  }
  return *state.training;
}

void wait_training_calls(TrainingCalls& calls, CallQueue queue) {
  wait_unary<GetJobRequest, Job>(queue, CallGroup::kTraining, TENSORD_START(calls.rpcs, GetJob),
                                 [&calls](const auto& request, auto& response) {
                                   to_message(calls.service().find(request.id())->status(), response);
                                 });
  wait_unary<ListJobsRequest, ListJobsResponse>(
      queue, CallGroup::kTraining, TENSORD_START(calls.rpcs, ListJobs),
      [&calls](const auto& request, auto& response) { list_jobs(calls.service(), request, response); });
  wait_unary<ListHostsRequest, ListHostsResponse>(
      queue, CallGroup::kTraining, TENSORD_START(calls.rpcs, ListHosts),
      [&calls](const auto&, auto& response) { list_hosts(calls.service(), response); });
  wait_slow_unary<CreateJobRequest, Job>(
      queue, CallGroup::kTraining, calls.thread, TENSORD_START(calls.rpcs, CreateJob),
      [&calls](const CreateJobRequest& request, Job& response, const grpc::ServerContext& context,
               const AccessPolicy& access) {
        const JobSpec spec = to_job_spec(request.spec());
        to_message(calls.service().create(spec, owner_of_uploads(access, context)), response);
      });
  wait_slow<PauseJobRequest, Job>(calls, queue, TENSORD_START(calls.rpcs, PauseJob),
                                  [](TrainingService& service, const auto& request, auto& response) {
                                    to_message(service.pause(request.id()), response);
                                  });
  wait_slow<ResumeJobRequest, Job>(calls, queue, TENSORD_START(calls.rpcs, ResumeJob),
                                   [](TrainingService& service, const auto& request, auto& response) {
                                     to_message(service.resume(request.id(), request.world_size()), response);
                                   });
  wait_slow<CancelJobRequest, Job>(calls, queue, TENSORD_START(calls.rpcs, CancelJob),
                                   [](TrainingService& service, const auto& request, auto& response) {
                                     to_message(service.cancel(request.id()), response);
                                   });
  wait_slow<FinishJobRequest, Job>(calls, queue, TENSORD_START(calls.rpcs, FinishJob),
                                   [](TrainingService& service, const auto& request, auto& response) {
                                     to_message(service.finish_training(request.id()), response);
                                   });
  wait_slow<DeleteJobRequest, DeleteJobResponse>(
      calls, queue, TENSORD_START(calls.rpcs, DeleteJob),
      [](TrainingService& service, const auto& request, auto&) { service.remove(request.id()); });
  wait_slow<RollbackRequest, RollbackResponse>(calls, queue, TENSORD_START(calls.rpcs, Rollback),
                                               [](TrainingService& service, const auto& request, auto& response) {
                                                 const auto result = service.roll_back(request.model());
                                                 response.set_withdrawn_version(result.withdrawn);
                                                 response.set_served_version(result.served);
                                               });
  wait_training_streams(calls, queue);
}

}  // namespace tensord::server
