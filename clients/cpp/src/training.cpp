#include "tensord/client/training.h"

#include <fstream>

#include "message.h"
#include "tensord/client/error.h"
#include "training_impl.h"

namespace tensord::client {
namespace {

namespace rpc = training::v1;
using TrainingStub = rpc::TrainingService::Stub;

constexpr const char* kStreamData = "/tensord.training.v1.TrainingService/StreamData";
constexpr int kStreamedContents = 7;
constexpr size_t kUploadPiece = 1 << 20;

template <class Request>
Request with_id(const std::string& id) {
  Request request;
  request.set_id(id);
  return request;
}

}  // namespace

TrainingClient::TrainingClient(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

rpc::Job TrainingClient::create(const JobSpec& spec, const CallOptions& options) {
  rpc::CreateJobRequest request;
  *request.mutable_spec() = spec;
  return impl_->call(&TrainingStub::CreateJob, request, options);
}

rpc::Job TrainingClient::get(const std::string& id, const CallOptions& options) {
  return impl_->call(&TrainingStub::GetJob, with_id<rpc::GetJobRequest>(id), options);
}
rpc::Job TrainingClient::pause(const std::string& id, const CallOptions& options) {
  return impl_->call(&TrainingStub::PauseJob, with_id<rpc::PauseJobRequest>(id), options);
}
rpc::Job TrainingClient::resume(const std::string& id, const CallOptions& options) {
  return impl_->call(&TrainingStub::ResumeJob, with_id<rpc::ResumeJobRequest>(id), options);
}
rpc::Job TrainingClient::resume_with(const std::string& id, int world_size, const CallOptions& options) {
  auto request = with_id<rpc::ResumeJobRequest>(id);
  request.set_world_size(world_size);
  return impl_->call(&TrainingStub::ResumeJob, request, options);
}
rpc::Job TrainingClient::cancel(const std::string& id, const CallOptions& options) {
  return impl_->call(&TrainingStub::CancelJob, with_id<rpc::CancelJobRequest>(id), options);
}
void TrainingClient::remove(const std::string& id, const CallOptions& options) {
  impl_->call(&TrainingStub::DeleteJob, with_id<rpc::DeleteJobRequest>(id), options);
}

rpc::Job TrainingClient::finish(const std::string& id, const CallOptions& options) {
  return impl_->call(&TrainingStub::FinishJob, with_id<rpc::FinishJobRequest>(id), options);
}

std::vector<rpc::Job> TrainingClient::list(const std::string& model, const CallOptions& options) {
  return list(model, std::map<std::string, std::string>(), options);
}

std::vector<rpc::Job> TrainingClient::list(const std::string& model, const std::map<std::string, std::string>& tags,
                                           const CallOptions& options) {
  rpc::ListJobsRequest request;
  request.set_model(model);
  request.mutable_tags()->insert(tags.begin(), tags.end());
  const rpc::ListJobsResponse response = impl_->call(&TrainingStub::ListJobs, request, options);
  return {response.jobs().begin(), response.jobs().end()};
}

std::vector<rpc::Host> TrainingClient::hosts(const CallOptions& options) {
  const rpc::ListHostsResponse response = impl_->call(&TrainingStub::ListHosts, rpc::ListHostsRequest(), options);
  return {response.hosts().begin(), response.hosts().end()};
}

std::pair<int64_t, int64_t> TrainingClient::roll_back(const std::string& model, const CallOptions& options) {
  rpc::RollbackRequest request;
  request.set_model(model);
  const rpc::RollbackResponse response = impl_->call(&TrainingStub::Rollback, request, options);
  return {response.withdrawn_version(), response.served_version()};
}

namespace {

// Sends a file in pieces, the first of which is `piece` with what it has already.
template <class Writer, class Request>
void send_file(const std::string& path, grpc::ClientContext& context, Writer& writer, Request piece,
               const TrainingClient::OnUpload& on_upload) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) {
    context.TryCancel();
    throw NotFoundError(path + ": cannot be read");
  }
  const auto size = static_cast<uint64_t>(in.tellg());
  in.seekg(0);
  piece.set_size_bytes(size);
  for (uint64_t sent = 0; sent < size; sent += piece.data().size(), piece.set_size_bytes(0)) {
    piece.mutable_data()->resize(std::min<uint64_t>(kUploadPiece, size - sent));
    in.read(piece.mutable_data()->data(), static_cast<std::streamsize>(piece.data().size()));
    if (!in) {
      context.TryCancel();
      throw_error(StatusCode::kDataLoss, path + ": became shorter while it was read");
    }
    if (!writer.Write(piece)) break;  // the status says why
    if (on_upload) on_upload(sent + piece.data().size(), size);
  }
  writer.WritesDone();
  check_status(writer.Finish());
}

// Of a file that the server names: no path.
void check_download_name(const std::string& name) {
  const bool is_plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
                        name.find('\0') == std::string::npos;
  if (!is_plain) throw_error(StatusCode::kDataLoss, "the server sends a file named '" + name + "'");
}

}  // namespace

std::string TrainingClient::upload(const std::string& path, const CallOptions& options, const OnUpload& on_upload) {
  grpc::ClientContext context;
  impl_->connection->prepare(context, options, /*is_long=*/true);
  rpc::UploadModelResponse response;
  const auto writer = impl_->stub->UploadModel(&context, &response);
  send_file(path, context, *writer, rpc::UploadModelRequest(), on_upload);
  return response.upload_id();
}

TrainingClient::UploadedData TrainingClient::upload_data(const std::string& path, const CallOptions& options,
                                                         const OnUpload& on_upload) {
  grpc::ClientContext context;
  impl_->connection->prepare(context, options, /*is_long=*/true);
  rpc::UploadDataResponse response;
  const auto writer = impl_->stub->UploadData(&context, &response);
  rpc::UploadDataRequest first;
  first.set_file_name(path.substr(path.rfind('/') + 1));
  send_file(path, context, *writer, std::move(first), on_upload);
  return {response.file(), response.sha256()};
}

std::vector<TrainingClient::DownloadedFile> TrainingClient::download(const std::string& id, const std::string& folder,
                                                                     const CallOptions& options) {
  grpc::ClientContext context;
  impl_->connection->prepare(context, options, /*is_long=*/true);
  rpc::DownloadModelRequest request;
  request.set_id(id);
  const auto reader = impl_->stub->DownloadModel(&context, request);
  rpc::DownloadModelResponse response;
  std::vector<DownloadedFile> files;
  std::ofstream out;
  while (reader->Read(&response)) {
    try {
      if (!response.file_name().empty()) {
        check_download_name(response.file_name());
        files.push_back({response.file_name(), response.size_bytes(), ""});
        out = std::ofstream(folder + "/" + response.file_name(), std::ios::binary | std::ios::trunc);
      }
      out.write(response.data().data(), static_cast<std::streamsize>(response.data().size()));
      if (!out.flush() || files.empty()) throw_error(StatusCode::kUnavailable, folder + ": cannot be written");
    } catch (...) {
      context.TryCancel();
      reader->Finish();
      throw;
    }
    if (!response.sha256().empty()) files.back().sha256 = response.sha256();
  }
  check_status(reader->Finish());
  return files;
}

rpc::Job TrainingClient::watch(const std::string& id, const OnChange& on_change, int64_t after_step,
                               const CallOptions& options) {
  rpc::WatchJobRequest request;
  request.set_id(id);
  request.set_after_step(after_step);
  grpc::ClientContext context;
  impl_->connection->prepare(context, options, /*is_long=*/true);
  const auto reader = impl_->stub->WatchJob(&context, request);
  rpc::WatchJobResponse response;
  Job last;
  while (reader->Read(&response)) {
    last = response.job();
    if (on_change(last, {response.points().begin(), response.points().end()})) continue;
    context.TryCancel();
    reader->Finish();
    return last;
  }
  check_status(reader->Finish());
  return last;
}

rpc::Job TrainingClient::wait(const std::string& id, const CallOptions& options) {
  return watch(
      id, [](const Job&, const std::vector<Point>&) { return true; }, 0, options);
}

// A synchronous client stream with its own completion queue.
struct DataStream::Impl {
  explicit Impl(std::string id) : job_id(std::move(id)) {}
  ~Impl() {
    if (call && !is_finished) {
      context.TryCancel();
      grpc::Status status;
      call->Finish(&status, nullptr);
      wait();
    }
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
    }
  }

  // Waits for the pending operation and returns whether it succeeded.
  bool wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  }
  // Waits for the end of the call. Throws Error unless its status is OK.
  void finish() {
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    is_finished = true;
    check_status(status);
  }
  void write(const grpc::ByteBuffer& message) {
    if (is_finished) throw FailedPreconditionError("the stream of job " + job_id + " has ended");
    call->Write(message, nullptr);
    if (wait()) return;
    finish();
    throw FailedPreconditionError("job " + job_id + " takes no more batches");
  }

  const std::string job_id;
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  bool is_finished = false;
};

DataStream::DataStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataStream::DataStream(DataStream&&) noexcept = default;
DataStream::~DataStream() = default;

DataStream TrainingClient::stream_data(const std::string& id, const CallOptions& options) {
  auto stream = std::make_unique<DataStream::Impl>(id);
  impl_->connection->prepare(stream->context, options, /*is_long=*/true);
  stream->call =
      grpc::GenericStub(impl_->connection->channel()).PrepareCall(&stream->context, kStreamData, &stream->queue);
  stream->call->StartCall(nullptr);
  // If this fails, the first write fails too and reports the status.
  stream->wait();
  return DataStream(std::move(stream));
}

void DataStream::send(const std::vector<std::pair<std::string, Tensor>>& batch) {
  rpc::StreamDataRequest request;
  request.set_job_id(impl_->job_id);
  for (const auto& [name, tensor] : batch) {
    auto& input = *request.add_inputs();
    input.set_name(name);
    input.set_datatype(to_string(tensor.type()));
    input.mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
  }
  MessageBuilder message(request.SerializeAsString());
  for (const auto& [name, tensor] : batch) message.add_bytes_field(kStreamedContents, tensor);
  impl_->write(message.finish());
}

int64_t DataStream::complete() {
  rpc::StreamDataRequest request;
  request.set_job_id(impl_->job_id);
  request.set_complete(true);
  impl_->write(MessageBuilder(request.SerializeAsString()).finish());
  impl_->call->WritesDone(nullptr);
  impl_->wait();
  grpc::ByteBuffer answer;
  impl_->call->Read(&answer, nullptr);
  impl_->wait();
  impl_->finish();
  grpc::Slice bytes;
  rpc::StreamDataResponse response;
  if (!answer.DumpToSingleSlice(&bytes).ok() ||
      !response.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) {
    throw_error(StatusCode::kDataLoss, "the server's answer cannot be read");
  }
  return response.batches();
}

}  // namespace tensord::client
