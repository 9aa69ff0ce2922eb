#include "server/transport/infer/stream_call.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <list>
#include <memory>
#include <set>
#include <vector>

#include "core/base/delay_point.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/executor/requests/status.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/infer/request_context.h"

namespace tensord::server {
namespace {

// A response to be sent, and its charge against the quota of all clients.
struct StreamAnswer {
  grpc::ByteBuffer bytes;
  RequestLimits::Admission admission = {};
  size_t size() const { return bytes.Valid() ? bytes.Length() : 0; }
};

// Reading pauses while this many bytes of responses wait to be sent.
constexpr size_t kWaitingBytes = size_t{64} << 20;
// The client of a decoupled model does not read if this many bytes wait, so the stream is ended.
constexpr size_t kMaxWaitingBytes = size_t{256} << 20;

// How long such a client may take to finish the current read, so that it can receive the status.
constexpr int64_t kPatienceSeconds = 5;

// Overhead of a response besides its contents.
constexpr uint64_t kAnswerBytes = 512;

// How often a request may wait for its model, which may be evicted again.
constexpr int kMaxWaitsForModel = 3;

// Clients that send this header get the status of a failed request, which ends the stream, instead of an error message
// in a response.
constexpr const char* kErrorHeader = "triton_grpc_error";

bool has_error_header(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find(kErrorHeader);
  return header != context.client_metadata().end() && header->second == "true";
}

}  // namespace

// One request of a stream. The call owns it until its final response arrived and, for models with one response per
// request, earlier responses were passed on; it keeps the call alive until then.
class StreamRequest final : public InferSink {
 public:
  StreamRequest(std::shared_ptr<StreamCall> call, RequestContext request_context, bool is_ordered)
      : is_ordered(is_ordered), request_context(std::move(request_context)), call_(std::move(call)) {}

  void respond(InferResult result, bool is_final) override;
  bool is_cancelled() const override;
  std::shared_ptr<const void> hold_memory(uint64_t size_bytes) override;

  const bool is_ordered;
  const RequestContext request_context;
  std::list<StreamRequest>::iterator self;
  // For ordered requests; guarded by the call's mutex.
  bool is_answered = false;
  absl::Status answer_status;
  StreamAnswer answer;

 private:
  const std::shared_ptr<StreamCall> call_;
  absl::Status status_;  // the first error
  uint64_t responses_ = 0;
  int64_t previous_ns_ = request_context.arrived_ns;  // when the previous response was sent
};

// One ModelStreamInfer call. It submits requests as they arrive and writes responses one at a time: in request order
// for models with one response per request, as they come for decoupled models.
class StreamCall final : public GrpcCall {
 public:
  StreamCall(const CallQueue& queue, StreamCalls& calls)
      : GrpcCall(queue, {CallGroup::kInference, nullptr, /*hears_end=*/true}), calls_(calls) {}
  ~StreamCall() override { calls_.remove(this); }

  // Delivers a response of `request`, which may be destroyed afterwards if it is final. An empty response is not sent.
  // `full` says why the response cannot be queued for the client; empty if it can.
  void deliver(StreamRequest& request, const absl::Status& status, StreamAnswer answer, const std::string& full,
               bool is_final);
  // The charge of a response before its contents are added.
  RequestLimits::Admission charge() { return calls_.state_.limits.charge(kAnswerBytes); }
  RequestLimits& limits() { return calls_.state_.limits; }
  void drain();
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }

 private:
  void ask(void* tag) override { calls_.start_(&context(), &stream_, queue().queue, tag); }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<StreamCall>(queue(), calls_); }
  void accept() override;
  void refuse(const grpc::Status& status) override;
  void on_over() override;
  void on_finished() override;
  void on_read(bool ok);
  void on_written(bool ok);
  void on_woken(bool ok);
  void on_loaded(bool ok);
  void on_impatient(bool ok);

  std::shared_ptr<StreamCall> self() { return std::static_pointer_cast<StreamCall>(shared_from_this()); }
  bool take_message();
  bool waits_for_model(const RequestContext& request_context, absl::Status& refused);
  StreamRequest& add_request(RequestContext request_context, bool is_ordered);
  void close(const grpc::Status& status) TENSORD_REQUIRES(mutex_);
  void cancel_requests();
  // Starts whatever can be started now.
  void advance() TENSORD_REQUIRES(mutex_);
  bool has_room() const TENSORD_REQUIRES(mutex_);
  // Queues a response for writing.
  void pass_on(const absl::Status& status, StreamAnswer answer) TENSORD_REQUIRES(mutex_);
  // The client does not read: drops what is queued for it.
  void give_up(const std::string& reason) TENSORD_REQUIRES(mutex_);
  void start_finish() TENSORD_REQUIRES(mutex_);

  StreamCalls& calls_;
  InferStream stream_{&context()};
  grpc::ByteBuffer message_;
  std::atomic<bool> is_cancelled_{false};
  bool ends_on_error_ = false;

  Mutex mutex_;
  bool is_reading_ TENSORD_GUARDED_BY(mutex_) = false;
  bool is_writing_ TENSORD_GUARDED_BY(mutex_) = false;
  bool is_finishing_ TENSORD_GUARDED_BY(mutex_) = false;
  bool is_input_over_ TENSORD_GUARDED_BY(mutex_) = false;          // the client has finished sending
  bool is_draining_ TENSORD_GUARDED_BY(mutex_) = false;            // the server accepts no more requests
  bool is_closing_ TENSORD_GUARDED_BY(mutex_) = false;             // ends once all responses are written
  grpc::Status status_ TENSORD_GUARDED_BY(mutex_);                 // if is_closing_
  std::list<StreamRequest> ordered_ TENSORD_GUARDED_BY(mutex_);    // in order of arrival
  std::list<StreamRequest> decoupled_ TENSORD_GUARDED_BY(mutex_);  // for decoupled models
  std::list<StreamAnswer> waiting_ TENSORD_GUARDED_BY(mutex_);     // responses to write
  RequestLimits::Admission writing_ TENSORD_GUARDED_BY(mutex_);    // for the response that is being written
  size_t waiting_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;            // also of responses that wait for earlier ones
  // Finished requests. They hold their models, which must not be destroyed on their own worker threads, so they are
  // freed at the end of an event.
  std::list<StreamRequest> retired_ TENSORD_GUARDED_BY(mutex_);
  bool is_waking_ TENSORD_GUARDED_BY(mutex_) = false;  // an event that will free them is pending
  std::unique_ptr<grpc::Alarm> alarm_ TENSORD_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Alarm> patience_ TENSORD_GUARDED_BY(mutex_);  // for a client that does not read

  Operation<StreamCall> read_{this, &StreamCall::on_read};
  Operation<StreamCall> written_{this, &StreamCall::on_written};
  Operation<StreamCall> woken_{this, &StreamCall::on_woken};
  Operation<StreamCall> loaded_{this, &StreamCall::on_loaded};
  Operation<StreamCall> impatient_{this, &StreamCall::on_impatient};
  std::unique_ptr<grpc::Alarm> load_alarm_;  // resumes the stream on its queue when a model is loaded
  int waits_left_ = kMaxWaitsForModel;       // for the current request's model
};

void StreamRequest::respond(InferResult result, bool is_final) {
  const bool is_silent =
      !is_ordered && result.is_empty && result.status.ok() && !request_context.wants_empty_final_response;
  // As Triton's decoupled backends do: a client that asks for it gets an empty final response after the last one with
  // data.
  const bool ends_apart =
      is_final && !is_ordered && !result.is_empty && result.status.ok() && request_context.wants_empty_final_response;
  StreamAnswer answered;
  std::string full;
  const auto answer_with = [&](InferResult& part, bool is_last) {
    if (call_->is_cancelled()) return;
    try {
      answered.admission = call_->charge();
      write_stream_response(request_context, part, is_last, answered.admission).Swap(&answered.bytes);
    } catch (const Error& error) {
      full = error.what();
    }
  };
  if (!is_silent) answer_with(result, is_final && !ends_apart);
  result.outputs.clear();
  if (status_.ok()) status_ = result.status;
  if (!is_ordered) {
    request_context.metrics->count_response(responses_++, result.times, previous_ns_,
                                            static_cast<int>(result.status.code()), result.is_empty);
    previous_ns_ = Clock::system().now_ns();
  }
  if (is_final) {
    request_context.metrics->count_answer(result.times, static_cast<int>(status_.code()),
                                          std::string(status_.message()));
    request_context.metrics->add_in_flight(-1);
    request_context.telemetry.record_answer(result.times, status_);
    log_request(request_context, "grpc_stream", status_);
  }
  const std::shared_ptr<StreamCall> call = call_;  // this object must not outlive the call
  if (ends_apart) {
    call->deliver(*this, result.status, std::move(answered), full, /*is_final=*/false);
    answered = {};
    InferResult end;
    end.is_empty = true;
    answer_with(end, /*is_last=*/true);
  }
  call->deliver(*this, result.status, std::move(answered), full, is_final);
}

bool StreamRequest::is_cancelled() const { return call_->is_cancelled(); }

std::shared_ptr<const void> StreamRequest::hold_memory(uint64_t size_bytes) {
  return call_->limits().share(size_bytes);
}

void StreamCall::accept() {
  ends_on_error_ = has_error_header(context());
  const bool is_taken = calls_.add(self());
  const MutexLock lock(mutex_);
  if (!is_taken) close(grpc::Status(grpc::StatusCode::UNAVAILABLE, kServerShutsDown));
  advance();
}

void StreamCall::refuse(const grpc::Status& status) {
  const MutexLock lock(mutex_);
  close(status);
  advance();
}

void StreamCall::on_read(bool ok) {
  if (ok && !take_message()) return;  // its model is being loaded
  std::list<StreamRequest> retired;   // destroyed without the lock
  const MutexLock lock(mutex_);
  is_reading_ = false;
  is_input_over_ = is_input_over_ || !ok;
  advance();
  retired = std::move(retired_);
}

void StreamCall::on_loaded(bool) { on_read(true); }

// Only this function uses message_ and adds requests. Returns false if the model is being loaded on demand; the message
// is then read again.
bool StreamCall::take_message() {
  const uint64_t size_bytes = message_.Length();
  RequestContext request_context;
  request_context.takes_many_responses = true;
  InferRequest request;
  InferResult refused;
  try {
    read_request(calls_.state_, message_, context(), request_context, request);
    if (calls_.state_.is_draining) fail(ErrorCode::kUnavailable, kServerShutsDown);
    if (is_cancelled()) fail(ErrorCode::kCancelled, "the client has gone");
  } catch (...) {
    refused.status = current_exception_status();
    refused.times.arrived_ns = request_context.arrived_ns;
    if (waits_for_model(request_context, refused.status)) return false;
  }
  waits_left_ = kMaxWaitsForModel;
  message_.Clear();
  request_context.metrics->add_received(size_bytes);
  request_context.metrics->add_in_flight(1);
  const std::shared_ptr<ModelVersion> model = request_context.model;
  StreamRequest& sink = add_request(std::move(request_context), !model || !model->config().is_decoupled);
  if (refused.status.ok()) {
    model->submit(std::move(request), sink);
    if (is_cancelled()) model->record_cancelled();  // on_over() may have run before the model had the request
  } else {
    sink.respond(std::move(refused), /*is_final=*/true);
  }
  return true;
}

bool StreamCall::waits_for_model(const RequestContext& request_context, absl::Status& refused) {
  if (request_context.model || waits_left_ == 0) return false;
  bool waits = false;
  loaded_.begin();
  try {
    --waits_left_;
    waits = calls_.state_.repository.load_on_demand(request_context.model_name, [this] {
      if (!load_alarm_) load_alarm_ = std::make_unique<grpc::Alarm>();
      load_alarm_->Set(queue().queue, gpr_now(GPR_CLOCK_MONOTONIC), loaded_.tag());
    });
  } catch (...) {
    refused = current_exception_status();
  }
  if (!waits) loaded_.call_off();
  return waits;
}

StreamRequest& StreamCall::add_request(RequestContext request_context, bool is_ordered) {
  const MutexLock lock(mutex_);
  auto& requests = is_ordered ? ordered_ : decoupled_;
  StreamRequest& request = requests.emplace_back(self(), std::move(request_context), is_ordered);
  request.self = std::prev(requests.end());
  return request;
}

void StreamCall::deliver(StreamRequest& request, const absl::Status& status, StreamAnswer answer,
                         const std::string& full, bool is_final) {
  TENSORD_DELAY("stream.deliver");
  const MutexLock lock(mutex_);
  if (!full.empty()) give_up(full);
  if (!request.is_ordered) {
    pass_on(status, std::move(answer));
    if (is_final) retired_.splice(retired_.end(), decoupled_, request.self);
  } else {
    waiting_bytes_ += answer.size();
    request.answer = std::move(answer);
    request.answer_status = status;
    request.is_answered = true;
    while (!ordered_.empty() && ordered_.front().is_answered) {
      StreamRequest& front = ordered_.front();
      waiting_bytes_ -= front.answer.size();
      pass_on(front.answer_status, std::move(front.answer));
      retired_.splice(retired_.end(), ordered_, ordered_.begin());
    }
  }
  advance();
  if (!retired_.empty() && !is_writing_ && !is_waking_) {
    is_waking_ = true;
    if (!alarm_) alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(queue().queue, gpr_now(GPR_CLOCK_MONOTONIC), woken_.begin());
  }
}

void StreamCall::pass_on(const absl::Status& status, StreamAnswer answer) {
  if (is_cancelled()) return;  // or it is closing
  if (!status.ok() && ends_on_error_) {
    close(to_grpc_status(status));
    return;
  }
  if (answer.size() == 0) return;
  waiting_bytes_ += answer.size();
  waiting_.push_back(std::move(answer));
  if (waiting_bytes_ <= kMaxWaitingBytes || waiting_.size() == 1 || decoupled_.empty()) return;
  give_up("too many responses wait for the client to read them");
}

void StreamCall::give_up(const std::string& reason) {
  if (is_cancelled()) return;
  log(LogLevel::kWarning, "a stream is ended: its responses cannot wait for the client",
      {{"peer", context().peer()}, {"waiting_bytes", waiting_bytes_}, {"reason", reason}});
  close(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, reason));
  waiting_.clear();
  // A client that reads gets the status after the pending write. Otherwise the write never completes.
  if (!is_writing_) return;
  patience_ = std::make_unique<grpc::Alarm>();
  patience_->Set(queue().queue,
                 gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN)),
                 impatient_.begin());
}

void StreamCall::on_impatient(bool) {
  std::list<StreamRequest> retired;
  const MutexLock lock(mutex_);
  if (is_writing_) context().TryCancel();
  retired = std::move(retired_);
}

bool StreamCall::has_room() const {
  return ordered_.size() + decoupled_.size() + waiting_.size() < calls_.state_.stream_max_requests &&
         waiting_bytes_ < kWaitingBytes;
}

void StreamCall::advance() {
  if (is_finishing_) return;
  if (!is_writing_ && !waiting_.empty()) {
    is_writing_ = true;
    waiting_bytes_ -= waiting_.front().size();
    writing_ = std::move(waiting_.front().admission);
    stream_.Write(waiting_.front().bytes, written_.begin());
    waiting_.pop_front();
  }
  const bool takes_input = !is_input_over_ && !is_draining_ && !is_closing_;
  if (takes_input && !is_reading_ && has_room()) {
    is_reading_ = true;
    stream_.Read(&message_, read_.begin());
  }
  if (is_writing_) return;
  const bool has_requests = !ordered_.empty() || !decoupled_.empty();
  if (is_closing_ || (!takes_input && !has_requests)) start_finish();
}

void StreamCall::start_finish() {
  is_finishing_ = true;
  if (!is_closing_ && is_cancelled()) {
    status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client has gone");
  } else if (!is_closing_ && !is_input_over_) {
    status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, kServerShutsDown);
  }
  stream_.Finish(status_, finish_tag());
}

// Queued requests are cancelled when the call is done, because this may run under a lock of a model.
void StreamCall::close(const grpc::Status& status) {
  is_closing_ = true;
  status_ = status;
  is_cancelled_.store(true, std::memory_order_relaxed);
}

void StreamCall::on_written(bool ok) {
  std::list<StreamRequest> retired;
  const MutexLock lock(mutex_);
  is_writing_ = false;
  writing_ = {};
  if (patience_) patience_->Cancel();
  if (!ok) waiting_.clear();
  advance();
  retired = std::move(retired_);
}

void StreamCall::on_over() {
  TENSORD_DELAY("stream.done");
  if (context().IsCancelled()) is_cancelled_.store(true, std::memory_order_relaxed);
  if (is_cancelled()) cancel_requests();
  std::list<StreamRequest> retired;
  const MutexLock lock(mutex_);
  is_input_over_ = true;
  if (is_cancelled()) waiting_.clear();
  advance();
  retired = std::move(retired_);
}

void StreamCall::cancel_requests() {
  std::set<std::shared_ptr<ModelVersion>> models;
  {
    const MutexLock lock(mutex_);
    for (const auto* requests : {&ordered_, &decoupled_}) {
      for (const StreamRequest& request : *requests) {
        if (request.request_context.model) models.insert(request.request_context.model);
      }
    }
  }
  for (const auto& model : models) model->record_cancelled();
}

void StreamCall::on_woken(bool) {
  std::list<StreamRequest> retired;
  const MutexLock lock(mutex_);
  is_waking_ = false;
  retired = std::move(retired_);
}

void StreamCall::on_finished() {
  std::list<StreamRequest> retired;
  const MutexLock lock(mutex_);
  retired = std::move(retired_);
}

void StreamCall::drain() {
  const MutexLock lock(mutex_);
  is_draining_ = true;
  advance();
}

StreamCalls::StreamCalls(ServerState& state, StartStream start) : state_(state), start_(std::move(start)) {}

void StreamCalls::wait(const CallQueue& queue) { GrpcCall::wait_for<StreamCall>(queue, *this); }

bool StreamCalls::add(const std::shared_ptr<StreamCall>& call) {
  const MutexLock lock(mutex_);
  open_.emplace(call.get(), call);
  return !is_draining_;
}

void StreamCalls::remove(const StreamCall* call) {
  const MutexLock lock(mutex_);
  open_.erase(call);
}

void StreamCalls::drain() {
  std::vector<std::shared_ptr<StreamCall>> calls;
  {
    const MutexLock lock(mutex_);
    is_draining_ = true;
    for (const auto& [call, held] : open_) calls.push_back(held.lock());
  }
  for (const auto& call : calls) {
    if (call) call->drain();
  }
}

}  // namespace tensord::server
