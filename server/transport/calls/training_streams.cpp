// The streaming calls of the training service.
#include <grpcpp/alarm.h>
#include <grpcpp/support/async_stream.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "server/executor/requests/status.h"
#include "server/training/training_service.h"
#include "server/transport/calls/training_batch.h"
#include "server/transport/calls/training_calls.h"
#include "server/transport/calls/training_messages.h"
#include "server/transport/grpc/byte_buffer.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/grpc/message_bytes.h"

namespace tensord::server {
namespace {

// Minimum interval between two messages of a watch.
constexpr auto kWatchInterval = std::chrono::milliseconds(100);

// Overhead of a batch besides its data.
constexpr uint64_t kBatchBytes = 1024;

grpc::Status has_gone() { return {grpc::StatusCode::CANCELLED, "the client has gone"}; }

// Streams a job's status whenever it changes, until the job reaches a terminal state.
class WatchJobCall final : public GrpcCall {
 public:
  WatchJobCall(const CallQueue& queue, TrainingCalls& calls)
      : GrpcCall(queue, {CallGroup::kTraining, &calls.streams, /*hears_end=*/true}), calls_(calls) {}

 private:
  void ask(void* tag) override {
    calls_.rpcs.RequestWatchJob(&context(), &bytes_, &writer_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<WatchJobCall>(queue(), calls_); }

  void accept() override {
    try {
      RequestLimits::Admission admission = queue().limits->hold(bytes_.Length());
      training_rpc::WatchJobRequest request;
      read_message(bytes_, *queue().limits, admission, request);
      job_ = calls_.service().find(request.id());
      sent_step_ = request.after_step();
      look();
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void look() {
    const uint64_t revision = job_->revision();
    if (revision == sent_revision_) {
      sleep();
      return;
    }
    sent_revision_ = revision;
    training_rpc::WatchJobResponse response;
    const JobStatus status = job_->status();
    is_last_ = is_at_rest(status.state);
    to_message(status, *response.mutable_job());
    // Sends the last point again if it was evaluated since.
    for (const CurvePoint& point : job_->points_after(sent_step_ - 1)) {
      if (point.step == sent_step_ && (!has_sent_ || point.metrics.size() == sent_metrics_)) continue;
      to_message(point, *response.add_points());
      sent_step_ = point.step;
      sent_metrics_ = point.metrics.size();
      has_sent_ = true;
    }
    admission_ = queue().limits->hold(response.ByteSizeLong());
    writer_.Write(to_byte_buffer(response), written_.begin());
  }

  void on_written(bool) {
    admission_ = {};
    if (is_last_) {
      end(grpc::Status::OK);
    } else {
      sleep();  // ends there if the client has disconnected
    }
  }

  void on_time(bool) {
    if (is_over_) {
      end(grpc::Status(grpc::StatusCode::CANCELLED, "the watch has ended"));
      return;
    }
    try {
      look();
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
    }
  }

  void sleep() { alarm_.Set(queue().queue, std::chrono::system_clock::now() + kWatchInterval, woken_.begin()); }

  void end(const grpc::Status& status) { writer_.Finish(status, finish_tag()); }
  void refuse(const grpc::Status& status) override { end(status); }
  void on_over() override { is_over_ = true; }

  TrainingCalls& calls_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context()};
  grpc::Alarm alarm_;
  std::shared_ptr<TrainingJob> job_;
  RequestLimits::Admission admission_;  // for the message that the client has not read yet
  uint64_t sent_revision_ = 0;
  int64_t sent_step_ = 0;
  size_t sent_metrics_ = 0;  // in the point of that step
  bool has_sent_ = false;
  bool is_last_ = false;
  std::atomic<bool> is_over_{false};
  Operation<WatchJobCall> written_{this, &WatchJobCall::on_written};
  Operation<WatchJobCall> woken_{this, &WatchJobCall::on_time};
};

// Reads batches into a job. While the job's buffer is full nothing is read, so that gRPC's flow control stops the
// client. The job's thread may start the next read, so shared state is under a lock.
class StreamDataCall final : public GrpcCall {
 public:
  StreamDataCall(const CallQueue& queue, TrainingCalls& calls)
      : GrpcCall(queue, {CallGroup::kTraining, &calls.streams, /*hears_end=*/true}), calls_(calls) {}

 private:
  void ask(void* tag) override {
    calls_.rpcs.RequestStreamData(&context(), &reader_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<StreamDataCall>(queue(), calls_); }

  void accept() override { reader_.Read(&message_, read_.begin()); }

  void on_read(bool ok) {
    if (!ok) {
      end(is_over() ? has_gone() : grpc::Status::OK);
      return;
    }
    try {
      RequestLimits::Admission admission = queue().limits->hold(message_.Length());
      unpack(message_, *queue().limits, admission);
      take(to_wire_message(message_), std::move(admission));
    } catch (...) {
      end(to_grpc_status(current_exception_status()));
      return;
    }
    message_.Clear();
    if (!start_waiting()) {
      end(has_gone());
      return;
    }
    // The stream may keep the callback longer than the call exists.
    stream_->when_room([held = weak_from_this(), this] {
      if (const auto call = held.lock()) read_on();
    });
  }

  bool is_over() {
    const MutexLock lock(mutex_);
    return is_over_;
  }

  // Returns false if the client has disconnected.
  bool start_waiting() {
    const MutexLock lock(mutex_);
    is_waiting_ = !is_over_;
    return is_waiting_;
  }

  void take(const WireMessage& wire, RequestLimits::Admission admission) {
    TrainingBatch batch = parse_training_batch(wire, &admission);
    if (!stream_) {
      const std::shared_ptr<TrainingJob> job = calls_.service().find(batch.job_id);
      job_id_ = batch.job_id;
      const auto stream = job->stream();
      if (!stream) fail(ErrorCode::kFailedPrecondition, "the data of job '", job_id_, "' is not streamed");
      stream->attach();
      stream_ = stream;
    }
    check(batch.job_id.empty() || batch.job_id == job_id_, "job_id: a stream is for one job, '", job_id_, "'");
    const MemoryOwnerScope owner_scope(memory_owner("job/" + job_id_));
    if (batch.has_tensors) {
      // Charged until the job takes the batch, however small it is.
      admission.grow(kBatchBytes);
      auto arrays = decode_training_batch(batch, wire, &admission);
      auto account = std::make_shared<RequestLimits::Admission>(std::move(admission));
      if (stream_->push(batch.number, std::move(arrays), std::move(account))) ++batches_;
    }
    is_complete_ = is_complete_ || batch.is_complete;
  }

  void read_on() {
    const MutexLock lock(mutex_);
    if (!std::exchange(is_waiting_, false)) return;
    reader_.Read(&message_, read_.begin());
  }

  void on_over() override {
    bool was_waiting = false;
    {
      const MutexLock lock(mutex_);
      is_over_ = context().IsCancelled();
      was_waiting = is_over_ && std::exchange(is_waiting_, false);
    }
    if (was_waiting) end(has_gone());
  }

  void refuse(const grpc::Status& status) override { end(status); }

  void end(const grpc::Status& status) {
    if (!status.ok()) {
      if (stream_) stream_->detach(false);
      reader_.FinishWithError(status, finish_tag());
      return;
    }
    training_rpc::StreamDataResponse response;
    response.set_batches(batches_);
    if (stream_) {
      response.set_next_batch(stream_->next());
      stream_->detach(is_complete_);
    }
    reader_.Finish(to_byte_buffer(response), status, finish_tag());
  }

  TrainingCalls& calls_;
  grpc::ByteBuffer message_;
  grpc::ServerAsyncReader<grpc::ByteBuffer, grpc::ByteBuffer> reader_{&context()};
  std::shared_ptr<BatchStream> stream_;
  std::string job_id_;
  int64_t batches_ = 0;
  bool is_complete_ = false;
  Mutex mutex_;
  bool is_waiting_ TENSORD_GUARDED_BY(mutex_) = false;  // waits for room in the buffer, with no read pending
  bool is_over_ TENSORD_GUARDED_BY(mutex_) = false;     // the client has disconnected
  Operation<StreamDataCall> read_{this, &StreamDataCall::on_read};
};

}  // namespace

void wait_training_streams(TrainingCalls& calls, CallQueue queue) {
  GrpcCall::wait_for<WatchJobCall>(queue, calls);
  GrpcCall::wait_for<StreamDataCall>(queue, calls);
  wait_training_files(calls, queue);
}

}  // namespace tensord::server
