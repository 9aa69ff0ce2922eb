// The calls that carry files: data for jobs, and the models that they made.
#include <grpcpp/alarm.h>
#include <grpcpp/support/async_stream.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/executor/requests/status.h"
#include "server/training/training_service.h"
#include "server/transport/calls/training_calls.h"
#include "server/transport/grpc/byte_buffer.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/grpc/message_bytes.h"

namespace tensord::server {
namespace {

constexpr uint64_t kDownloadPiece = 1 << 20;

// What UploadCall needs to know of each of its methods.
struct UploadedData {
  using Request = training_rpc::UploadDataRequest;
  using Response = training_rpc::UploadDataResponse;
  static constexpr auto kAsk = &TrainingRpcs::RequestUploadData;

  static std::unique_ptr<TrainingService::Upload> begin(TrainingService& service, const std::string& owner,
                                                        const Request& first) {
    check(!first.file_name().empty(), "file_name: needed in the first message");
    return std::make_unique<TrainingService::Upload>(service, first.size_bytes(), first.file_name(), owner);
  }
  static void finish(TrainingService::Upload& upload, Response& response) {
    response.set_file(upload.finish());
    response.set_sha256(upload.sha256());
  }
};

struct UploadedModel {
  using Request = training_rpc::UploadModelRequest;
  using Response = training_rpc::UploadModelResponse;
  static constexpr auto kAsk = &TrainingRpcs::RequestUploadModel;

  static std::unique_ptr<TrainingService::Upload> begin(TrainingService& service, const std::string& owner,
                                                        const Request& first) {
    return std::make_unique<TrainingService::Upload>(service, first.size_bytes(), std::string(), owner);
  }
  static void finish(TrainingService::Upload& upload, Response& response) { response.set_upload_id(upload.finish()); }
};

// A call that holds files or memory while it is open: it is cancelled if the client does nothing for long.
class FileCall : public GrpcCall {
 protected:
  FileCall(const CallQueue& queue, TrainingCalls& calls)
      : GrpcCall(queue, {CallGroup::kTraining, &calls.streams}), calls_(calls) {}

  void watch() {
    last_ns_ = Clock::system().now_ns();
    const MutexLock lock(mutex_);
    is_watched_ = true;
    set_alarm();
  }
  // Before an operation that the client ends. The time does not run while the call waits for the work thread.
  void await_client() {
    last_ns_ = Clock::system().now_ns();
    is_clients_turn_ = true;
  }
  void end_clients_turn() { is_clients_turn_ = false; }
  // Before the call's Finish. The alarm would keep the call until its time.
  void end_watch() {
    const MutexLock lock(mutex_);
    if (is_watched_) alarm_.Cancel();
    is_watched_ = false;
  }
  bool is_idle() const { return is_idle_; }

  TrainingCalls& calls_;

 private:
  int64_t limit_ns() const {
    const TrainingService* training = calls_.state.training;
    return int64_t{training ? training->transfer_timeout_secs() : 1} * 1'000'000'000;
  }
  void set_alarm() TENSORD_REQUIRES(mutex_) {
    const int64_t left_ns = last_ns_ + limit_ns() - Clock::system().now_ns();
    alarm_.Set(queue().queue, std::chrono::system_clock::now() + std::chrono::nanoseconds(left_ns), rung_.begin());
  }
  void on_alarm(bool) {
    const MutexLock lock(mutex_);
    if (!is_watched_) return;
    if (!is_clients_turn_) last_ns_ = Clock::system().now_ns();
    if (Clock::system().now_ns() < last_ns_ + limit_ns()) return set_alarm();
    is_watched_ = false;
    is_idle_ = true;
    log(LogLevel::kWarning, "a transfer of files ends: its client is idle", {{"client", context().peer()}});
    context().TryCancel();  // the operation under way then fails
  }

  std::atomic<int64_t> last_ns_{0};
  std::atomic<bool> is_clients_turn_{false};
  std::atomic<bool> is_idle_{false};
  Mutex mutex_;
  bool is_watched_ TENSORD_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ TENSORD_GUARDED_BY(mutex_);
  Operation<FileCall> rung_{this, &FileCall::on_alarm};
};

// Writes an upload piece by piece on the work thread.
template <class Uploaded>
class UploadCall final : public FileCall {
 public:
  UploadCall(const CallQueue& queue, TrainingCalls& calls) : FileCall(queue, calls) {}

 private:
  void ask(void* tag) override {
    (calls_.rpcs.*Uploaded::kAsk)(&context(), &reader_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<UploadCall>(queue(), calls_); }

  void accept() override {
    watch();
    await_client();
    reader_.Read(&bytes_, read_.begin());
  }

  void on_read(bool ok) {
    end_clients_turn();
    calls_.thread.post([this, ok] { ok ? write() : finish(); });
  }

  void write() {
    try {
      RequestLimits::Admission admission = queue().limits->hold(bytes_.Length());
      typename Uploaded::Request request;
      read_message(bytes_, *queue().limits, admission, request);
      if (!upload_) upload_ = Uploaded::begin(calls_.service(), owner_of_uploads(*queue().access, context()), request);
      upload_->write(request.data());
      await_client();
      reader_.Read(&bytes_, read_.begin());
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void finish() {
    try {
      if (is_idle()) fail(ErrorCode::kCancelled, "the client sent nothing for too long");
      check(upload_ != nullptr, "data: the upload is empty");
      typename Uploaded::Response response;
      response.set_size_bytes(upload_->size_bytes());
      Uploaded::finish(*upload_, response);
      end_watch();
      reader_.Finish(to_byte_buffer(response), grpc::Status::OK, finish_tag());
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void end(const grpc::Status& status) {
    end_watch();
    upload_.reset();
    reader_.FinishWithError(status, finish_tag());
  }

  void refuse(const grpc::Status& status) override { end(status); }

  using FileCall::calls_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncReader<grpc::ByteBuffer, grpc::ByteBuffer> reader_{&context()};
  std::unique_ptr<TrainingService::Upload> upload_;
  Operation<UploadCall> read_{this, &UploadCall::on_read};
};

// Reads the files of a model piece by piece on the work thread; the next one when the client has taken the last.
class DownloadModelCall final : public FileCall {
 public:
  DownloadModelCall(const CallQueue& queue, TrainingCalls& calls) : FileCall(queue, calls) {}

 private:
  void ask(void* tag) override {
    calls_.rpcs.RequestDownloadModel(&context(), &bytes_, &writer_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<DownloadModelCall>(queue(), calls_); }

  void accept() override {
    calls_.thread.post([this] { begin(); });
  }

  void begin() {
    try {
      RequestLimits::Admission admission = queue().limits->hold(bytes_.Length());
      training_rpc::DownloadModelRequest request;
      read_message(bytes_, *queue().limits, admission, request);
      download_ = std::make_unique<TrainingService::Download>(calls_.service(), request.id());
    } catch (...) {
      return end(to_grpc_status(current_exception_status()));
    }
    watch();
    send();
  }

  void send() {
    try {
      if (next_ == download_->files().size()) return end(grpc::Status::OK);
      training_rpc::DownloadModelResponse response;
      if (!file_.is_open()) open(response);
      read(response);
      admission_ = queue().limits->hold(response.ByteSizeLong());
      const grpc::ByteBuffer piece = to_byte_buffer(response);
      await_client();
      writer_.Write(piece, written_.begin());
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void open(training_rpc::DownloadModelResponse& response) {
    const std::filesystem::path& path = download_->files()[next_];
    file_.open(path, std::ios::binary);
    left_bytes_ = std::filesystem::file_size(path);
    digest_ = std::make_unique<distributed::Digest>();
    response.set_file_name(path.filename().string());
    response.set_size_bytes(left_bytes_);
    if (next_ == 0) response.set_step(download_->step());
  }

  void read(training_rpc::DownloadModelResponse& response) {
    std::string& data = *response.mutable_data();
    data.resize(std::min(kDownloadPiece, left_bytes_));
    file_.read(data.data(), static_cast<std::streamsize>(data.size()));
    if (!file_) fail(ErrorCode::kUnavailable, download_->files()[next_].filename().string(), ": cannot be read");
    digest_->add(data);
    left_bytes_ -= data.size();
    if (left_bytes_ > 0) return;
    response.set_sha256(digest_->finish());
    file_.close();
    ++next_;
  }

  void on_written(bool ok) {
    end_clients_turn();
    admission_ = {};
    if (!ok) return end({grpc::StatusCode::CANCELLED, "the client has gone"});
    calls_.thread.post([this] { send(); });
  }

  void end(const grpc::Status& status) {
    end_watch();
    file_.close();
    download_.reset();
    writer_.Finish(status, finish_tag());
  }
  void refuse(const grpc::Status& status) override { writer_.Finish(status, finish_tag()); }

  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context()};
  RequestLimits::Admission admission_;  // for the piece that the client has not taken yet
  std::unique_ptr<TrainingService::Download> download_;
  size_t next_ = 0;
  std::ifstream file_;
  uint64_t left_bytes_ = 0;
  std::unique_ptr<distributed::Digest> digest_;
  Operation<DownloadModelCall> written_{this, &DownloadModelCall::on_written};
};

}  // namespace

void wait_training_files(TrainingCalls& calls, CallQueue queue) {
  GrpcCall::wait_for<UploadCall<UploadedData>>(queue, calls);
  GrpcCall::wait_for<UploadCall<UploadedModel>>(queue, calls);
  GrpcCall::wait_for<DownloadModelCall>(queue, calls);
}

}  // namespace tensord::server
