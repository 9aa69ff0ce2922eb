#include "server/transport/training_client.h"

#include <grpcpp/grpcpp.h>

#include <fstream>

#include "core/base/error.h"
#include "protos/training.grpc.pb.h"
#include "server/transport/client_status.h"
#include "server/transport/training_messages.h"

namespace tensord::server {
namespace {

namespace rpc = training::v1;

constexpr size_t kUploadPiece = 1 << 20;

}  // namespace

struct TrainingClient::Impl {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<rpc::TrainingService::Stub> stub;

  // A call that gives back the job with this id.
  template <class Request, class Method>
  JobStatus job_call(const std::string& id, Method method) {
    Request request;
    request.set_id(id);
    rpc::Job job;
    grpc::ClientContext context;
    check_status((stub.get()->*method)(&context, request, &job));
    return to_job_status(job);
  }
};

TrainingClient::TrainingClient(const std::string& address) : impl_(std::make_unique<Impl>()) {
  impl_->channel = connect(address);
  impl_->stub = rpc::TrainingService::NewStub(impl_->channel);
}

TrainingClient::~TrainingClient() = default;

JobStatus TrainingClient::create(const JobSpec& spec) {
  rpc::CreateJobRequest request;
  to_message(spec, *request.mutable_spec());
  rpc::Job job;
  grpc::ClientContext context;
  check_status(impl_->stub->CreateJob(&context, request, &job));
  return to_job_status(job);
}

JobStatus TrainingClient::get(const std::string& id) {
  return impl_->job_call<rpc::GetJobRequest>(id, &rpc::TrainingService::Stub::GetJob);
}
JobStatus TrainingClient::pause(const std::string& id) {
  return impl_->job_call<rpc::PauseJobRequest>(id, &rpc::TrainingService::Stub::PauseJob);
}
JobStatus TrainingClient::resume(const std::string& id) {
  return impl_->job_call<rpc::ResumeJobRequest>(id, &rpc::TrainingService::Stub::ResumeJob);
}
JobStatus TrainingClient::cancel(const std::string& id) {
  return impl_->job_call<rpc::CancelJobRequest>(id, &rpc::TrainingService::Stub::CancelJob);
}

void TrainingClient::remove(const std::string& id) {
  rpc::DeleteJobRequest request;
  request.set_id(id);
  rpc::DeleteJobResponse response;
  grpc::ClientContext context;
  check_status(impl_->stub->DeleteJob(&context, request, &response));
}

std::vector<JobStatus> TrainingClient::list(const std::string& model) {
  rpc::ListJobsRequest request;
  request.set_model(model);
  rpc::ListJobsResponse response;
  grpc::ClientContext context;
  check_status(impl_->stub->ListJobs(&context, request, &response));
  std::vector<JobStatus> out;
  for (const rpc::Job& job : response.jobs()) out.push_back(to_job_status(job));
  return out;
}

std::pair<int64_t, int64_t> TrainingClient::roll_back(const std::string& model) {
  rpc::RollbackRequest request;
  request.set_model(model);
  rpc::RollbackResponse response;
  grpc::ClientContext context;
  check_status(impl_->stub->Rollback(&context, request, &response));
  return {response.withdrawn_version(), response.served_version()};
}

std::string TrainingClient::upload(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) fail(ErrorCode::kNotFound, path, ": cannot be read");
  const auto size = static_cast<uint64_t>(in.tellg());
  in.seekg(0);
  rpc::UploadModelResponse response;
  grpc::ClientContext context;
  const auto writer = impl_->stub->UploadModel(&context, &response);
  rpc::UploadModelRequest piece;
  piece.set_size_bytes(size);
  for (uint64_t sent = 0; sent < size; sent += piece.data().size(), piece.set_size_bytes(0)) {
    piece.mutable_data()->resize(std::min<uint64_t>(kUploadPiece, size - sent));
    in.read(piece.mutable_data()->data(), static_cast<std::streamsize>(piece.data().size()));
    // A write that fails has its reason in the status.
    if (!in || !writer->Write(piece)) break;
  }
  writer->WritesDone();
  check_status(writer->Finish());
  return response.upload_id();
}

void TrainingClient::watch(const std::string& id, const OnChange& on_change) {
  rpc::WatchJobRequest request;
  request.set_id(id);
  grpc::ClientContext context;
  const auto reader = impl_->stub->WatchJob(&context, request);
  rpc::WatchJobResponse response;
  while (reader->Read(&response)) {
    std::vector<CurvePoint> points;
    for (const rpc::Point& point : response.points()) points.push_back(to_curve_point(point));
    if (on_change(to_job_status(response.job()), points)) continue;
    context.TryCancel();
    reader->Finish();
    return;
  }
  check_status(reader->Finish());
}

}  // namespace tensord::server
