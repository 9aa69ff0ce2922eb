#include <atomic>

#include "server/executor/request_path.h"
#include "server/executor/status.h"
#include "server/scheduler/scheduler.h"

namespace tensord::server {
namespace {

// Runs below this take less time than handing them to another thread.
constexpr int64_t kShortRunNs = 30'000;
// Larger inputs may make a short model long.
constexpr size_t kShortInputBytes = 64 << 10;

class BatchPath final : public RequestPath {
 public:
  explicit BatchPath(const PathContext& context);
  void submit(InferRequest request, InferSink& sink) override;
  void note_cancelled() override {}
  void stop() override { scheduler_.stop(); }

 private:
  class InferTask;
  InferResult run(size_t worker, const InferRequest& request, const InferSink& sink);
  bool is_short(const InferRequest& request) const;
  void note_compute(int64_t ns);

  const PathContext context_;
  int64_t default_timeout_us_ = 0;                      // of waiting; 0: none
  std::atomic<int64_t> typical_compute_ns_{INT64_MAX};  // moving average of the runs
  Scheduler scheduler_;                                 // last: its threads use the rest
};

class BatchPath::InferTask final : public Task {
 public:
  InferTask(BatchPath& path, InferRequest request, InferSink& sink)
      : path_(path), request_(std::move(request)), sink_(sink) {
    deadline_ns = request_.deadline_ns;
  }

  void run(size_t worker, int64_t now_ns) override {
    const int64_t arrived_ns = request_.arrived_ns;
    InferResult result = path_.run(worker, request_, sink_);
    request_ = {};  // the request's memory goes before the answer does
    result.times.arrived_ns = arrived_ns;
    result.times.queue_start_ns = enqueued_ns;
    result.times.compute_start_ns = result.times.compute_input_end_ns = now_ns;
    result.times.compute_end_ns = result.times.compute_output_start_ns = path_.scheduler_.clock().now_ns();
    path_.context_.metrics.count_execution(1, result.times);
    path_.note_compute(result.times.compute_end_ns - now_ns);
    sink_.respond(std::move(result), /*is_final=*/true);
    path_.context_.workers->note_answered();
  }

  void reject(ErrorCode code, const char* reason) override {
    InferResult result;
    result.status = absl::Status(to_status_code(code), reason);
    result.times.arrived_ns = request_.arrived_ns;
    result.times.queue_start_ns = enqueued_ns;
    sink_.respond(std::move(result), /*is_final=*/true);
  }

  bool is_cancelled() const override { return sink_.is_cancelled(); }

 private:
  BatchPath& path_;
  InferRequest request_;
  InferSink& sink_;
};

size_t queue_size(const PathContext& context) {
  const auto& batching = context.config.dynamic_batching;
  const size_t size = batching ? batching->default_queue_policy.max_queue_size : 0;
  return size > 0 ? size : context.default_queue_size;
}

BatchPath::BatchPath(const PathContext& context)
    : context_(context),
      scheduler_(std::make_unique<FifoPolicy>(queue_size(context)),
                 {.workers = static_cast<int>(context.workers->size()),
                  .on_worker_start = [workers = context.workers](size_t worker) { workers->start(worker); }}) {
  constexpr uint64_t kMaxTimeoutUs = uint64_t{1} << 50;
  const auto& batching = context.config.dynamic_batching;
  const uint64_t timeout_us = batching ? batching->default_queue_policy.default_timeout_us : 0;
  if (timeout_us < kMaxTimeoutUs) default_timeout_us_ = static_cast<int64_t>(timeout_us);
}

void BatchPath::submit(InferRequest request, InferSink& sink) {
  int64_t timeout_ns = 0, until = 0;
  const uint64_t timeout_us =
      request.queue_timeout_us ? request.queue_timeout_us : static_cast<uint64_t>(default_timeout_us_);
  if (timeout_us > 0 && !__builtin_mul_overflow(timeout_us, uint64_t{1000}, &timeout_ns) &&
      !__builtin_add_overflow(scheduler_.clock().now_ns(), timeout_ns, &until)) {
    request.deadline_ns = std::min(request.deadline_ns, until);
  }
  const bool may_run_here = is_short(request);
  scheduler_.submit(std::make_unique<InferTask>(*this, std::move(request), sink), may_run_here);
}

bool BatchPath::is_short(const InferRequest& request) const {
  if (!context_.signature.has_bounded_work || typical_compute_ns_.load(std::memory_order_relaxed) > kShortRunNs) {
    return false;
  }
  size_t size_bytes = 0;
  for (const InferTensor& input : request.inputs) {
    if (input.tensor.defined()) size_bytes += input.tensor.size_bytes();
  }
  return size_bytes <= kShortInputBytes;
}

void BatchPath::note_compute(int64_t ns) {
  const int64_t before = typical_compute_ns_.load(std::memory_order_relaxed);
  // A moving average; an update lost between threads does no harm.
  const int64_t after = before == INT64_MAX ? ns : before + (ns - before) / 8;
  typical_compute_ns_.store(after, std::memory_order_relaxed);
}

InferResult BatchPath::run(size_t worker, const InferRequest& request, const InferSink& sink) {
  InferResult result;
  try {
    std::vector<const InferTensor*> inputs(context_.signature.inputs.size(), nullptr);
    for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
    RunResult run = context_.workers->run(worker, inputs, [&sink] { return sink.is_cancelled(); });
    result.outputs =
        select_outputs(std::move(run.outputs), context_.signature, context_.model, request.requested_outputs);
    result.copied_bytes = run.copied_bytes;
  } catch (...) {
    result.status = current_exception_status();
    result.outputs.clear();
  }
  return result;
}

}  // namespace

std::unique_ptr<RequestPath> make_batch_path(const PathContext& context) {
  return std::make_unique<BatchPath>(context);
}

}  // namespace tensord::server
