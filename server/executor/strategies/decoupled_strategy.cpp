#include "core/base/log.h"
#include "server/executor/requests/status.h"
#include "server/executor/strategies/batch_rules.h"
#include "server/executor/strategies/sequence_strategy.h"
#include "server/scheduler/scheduler.h"

namespace tensord::server {
namespace {

// Runs one request per worker at a time, because a list of responses has no rows to split.
class DecoupledStrategy final : public ExecutionStrategy {
 public:
  explicit DecoupledStrategy(const StrategyContext& context);
  ~DecoupledStrategy() override { stop(); }
  void submit(InferRequest&& request, InferSink& sink) override;
  void record_cancelled() override { scheduler_.drop_cancelled(); }
  void stop() override { scheduler_.stop(); }

 private:
  class DecoupledTask;
  RunResult run_model(size_t worker, const InferRequest& request, const InferSink& sink);

  const StrategyContext context_;
  std::unique_ptr<RateLimiter::Client> rate_limiter_;
  Scheduler scheduler_;  // declared last: its threads use the other members
};

class DecoupledStrategy::DecoupledTask final : public Task {
 public:
  DecoupledTask(DecoupledStrategy& path, InferRequest&& request, InferSink& sink)
      : path_(path), request_(std::move(request)), sink_(sink), pending_(path.context_.metrics) {
    deadline_ns = request_.deadline_ns;
    timeout_us = request_.queue_timeout_us;
    priority = request_.priority;
  }

  void run(size_t worker, int64_t now_ns) override {
    pending_.end();
    InferResult last = empty_result();
    last.times.compute_start_ns = last.times.compute_input_end_ns = now_ns;
    std::vector<std::vector<InferTensor>> responses;
    try {
      RunResult run = path_.run_model(worker, request_, sink_);
      last.copied_bytes = run.copied_bytes;
      responses = std::move(run.responses);
      for (auto& outputs : responses) {
        outputs = select_outputs(std::move(outputs), path_.context_.signature, path_.context_.model,
                                 request_.requested_outputs);
      }
    } catch (...) {
      responses.clear();
      last.status = current_exception_status();
      if (path_.scheduler_.clock().now_ns() >= request_.deadline_ns) {
        last.status = absl::DeadlineExceededError("Request timeout expired");
      }
    }
    last.times.compute_end_ns = last.times.compute_output_start_ns = path_.scheduler_.clock().now_ns();
    path_.context_.metrics.count_execution(request_.batch_size, last.times, last.status.ok());
    request_.inputs.clear();  // frees the request's memory before answering
    respond(std::move(responses), std::move(last));
    path_.context_.workers->record_answered();
  }

  void reject(ErrorCode code, const char* reason) override {
    InferResult result = empty_result();
    result.status = absl::Status(to_status_code(code), reason);
    sink_.respond(std::move(result), /*is_final=*/true);
  }

  bool is_cancelled() const override { return sink_.is_cancelled(); }

 private:
  InferResult empty_result() const {
    InferResult result;
    result.times.arrived_ns = request_.arrived_ns;
    result.times.queue_start_ns = enqueued_ns;
    return result;
  }

  // The last response is marked final; without responses, an empty one is sent.
  void respond(std::vector<std::vector<InferTensor>> responses, InferResult last) {
    for (size_t i = 0; i + 1 < responses.size(); ++i) {
      InferResult result;
      result.outputs = std::move(responses[i]);
      result.times = last.times;
      sink_.respond(std::move(result), /*is_final=*/false);
    }
    if (!responses.empty()) last.outputs = std::move(responses.back());
    last.is_empty = last.status.ok() && responses.empty();
    sink_.respond(std::move(last), /*is_final=*/true);
  }

  DecoupledStrategy& path_;
  InferRequest request_;
  InferSink& sink_;
  PendingRequest pending_;  // until it runs
};

void DecoupledStrategy::submit(InferRequest&& request, InferSink& sink) {
  scheduler_.submit(std::make_unique<DecoupledTask>(*this, std::move(request), sink));
}

// dynamic_batching's priorities and queue policies apply, its batch sizes do not.
BatchRules one_at_a_time(const StrategyContext& context) {
  BatchRules rules = make_batch_rules(context.config, context.signature, context.default_queue_size);
  rules.max_rows = 1;
  rules.preferred_rows.clear();
  rules.max_delay_ns = 0;
  return rules;
}

DecoupledStrategy::DecoupledStrategy(const StrategyContext& context)
    : context_(context),
      rate_limiter_(make_rate_limiter_client(context)),
      scheduler_(std::make_unique<BatchPolicy>(one_at_a_time(context)),
                 {.workers = static_cast<int>(context.workers->size()),
                  .pool = context.pool,
                  .run_batch = {},
                  .rate_limiter = rate_limiter_.get()}) {}

RunResult DecoupledStrategy::run_model(size_t worker, const InferRequest& request, const InferSink& sink) {
  std::vector<const InferTensor*> inputs(context_.signature.inputs.size(), nullptr);
  for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
  const Clock& clock = scheduler_.clock();
  return context_.workers->run(worker, inputs, [&] {
    return sink.is_cancelled() || (request.deadline_ns != kNoDeadline && clock.now_ns() >= request.deadline_ns);
  });
}

}  // namespace

std::unique_ptr<ExecutionStrategy> make_decoupled_strategy(const StrategyContext& context) {
  if (context.config.dynamic_batching && context.config.max_batch_size > 1) {
    log(LogLevel::kWarning, "no batches are made: the model is decoupled", {{"model", context.model}});
  }
  return std::make_unique<DecoupledStrategy>(context);
}

}  // namespace tensord::server
