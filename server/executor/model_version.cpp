#include "server/executor/model_version.h"

#include "core/base/log.h"
#include "core/base/parallel.h"
#include "server/executor/status.h"

namespace tensord::server {
namespace {

// Runs below this take less time than handing them to another thread.
constexpr int64_t kShortRunNs = 30'000;
// Larger inputs may make a short model long.
constexpr size_t kShortInputBytes = 64 << 10;
// Automatic warm-up leaves out batches that would take longer.
constexpr int64_t kMaxWarmupNs = 2'000'000'000;

}  // namespace

class ModelVersion::InferTask final : public Task {
 public:
  InferTask(ModelVersion& model, InferRequest request, InferSink& sink)
      : model_(model), request_(std::move(request)), sink_(sink) {
    deadline_ns = request_.deadline_ns;
  }

  void run(size_t worker, int64_t now_ns) override {
    model_.metrics_.observe_queue(now_ns - enqueued_ns);
    InferResult result = model_.run(worker, request_, sink_);
    request_ = {};  // the request's memory goes before the answer does
    const int64_t compute_ns = model_.scheduler_.clock().now_ns() - now_ns;
    model_.metrics_.observe_compute(compute_ns);
    model_.note_compute(compute_ns);
    sink_.finish(std::move(result));
    model_.count_run();
  }

  void reject(ErrorCode code, const char* reason) override {
    InferResult result;
    result.status = absl::Status(to_status_code(code), reason);
    sink_.finish(std::move(result));
  }

  bool is_cancelled() const override { return sink_.is_cancelled(); }

 private:
  ModelVersion& model_;
  InferRequest request_;
  InferSink& sink_;
};

namespace {

std::vector<std::unique_ptr<ModelSession>> make_sessions(const Model& model, int count) {
  std::vector<std::unique_ptr<ModelSession>> sessions;
  for (int i = 0; i < count; ++i) sessions.push_back(model.make_session());
  return sessions;
}

}  // namespace

ModelVersion::ModelVersion(std::string name, int64_t version, std::unique_ptr<const Model> model, Options options,
                           ModelMetrics& metrics)
    : name_(std::move(name)),
      version_text_(std::to_string(version)),
      model_(std::move(model)),
      options_(std::move(options)),
      metrics_(metrics),
      owner_(memory_owner(name_ + "/" + version_text_)),
      sessions_(make_sessions(*model_, options_.workers)),
      scheduler_(std::make_unique<FifoPolicy>(options_.max_queue_size),
                 {.workers = options_.workers, .on_worker_start = [this](size_t worker) { start_worker(worker); }}) {
  std::unique_lock lock(warmup_.mutex);
  warmup_.changed.wait(lock, [&] { return warmup_.error || warmup_.warm_workers == options_.workers; });
  if (warmup_.error) std::rethrow_exception(warmup_.error);
  if (!options_.warmup.empty()) model_->settle();
  options_.warmup.clear();
}

ModelVersion::~ModelVersion() { scheduler_.stop(); }

void ModelVersion::start_worker(size_t worker) {
  set_thread_budget(options_.threads_per_worker);
  std::exception_ptr error;
  try {
    if (worker > 0) {
      std::unique_lock lock(warmup_.mutex);
      warmup_.changed.wait(lock, [&] { return warmup_.error || warmup_.warm_workers > 0; });
      if (warmup_.error) return;
    }
    warm_up(worker);
    sessions_[worker]->end_warmup();
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(warmup_.mutex);
  ++warmup_.warm_workers;
  if (error && !warmup_.error) warmup_.error = error;
  warmup_.changed.notify_all();
}

void ModelVersion::warm_up(size_t worker) {
  const MemoryOwnerScope owner_scope(owner_);
  int64_t row_ns = 0;  // what one of a batch takes
  for (const WarmupRequest& request : options_.warmup) {
    // Where a run takes seconds, what it would save the first client is nothing beside that.
    if (!request.is_configured && row_ns > kMaxWarmupNs / request.batch_size) continue;
    const int64_t start_ns = Clock::system().now_ns();
    try {
      warm_up_with(worker, request);
    } catch (const Error& error) {
      if (request.is_configured) throw Error(error.code(), concat("model_warmup '", request.name, "': ", error.what()));
      log(LogLevel::kWarning, "model not warmed up with zeros",
          {{"model", name_}, {"request", request.name}, {"reason", error.what()}});
      return;
    }
    row_ns = (Clock::system().now_ns() - start_ns) / request.batch_size;
  }
}

void ModelVersion::warm_up_with(size_t worker, const WarmupRequest& request) {
  std::vector<const InferTensor*> inputs(signature().inputs.size(), nullptr);
  for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
  const auto run = [&](int threads) {
    set_thread_budget(threads);
    sessions_[worker]->run(inputs, [] { return false; });
  };
  for (uint32_t i = 0; i < request.count; ++i) run(options_.threads_per_worker);
  // The numbers of threads that a run may get of the shared cores.
  if (!options_.cores || signature().keeps_state) return;
  for (int threads = options_.threads_per_worker / 2; threads > 0; threads /= 2) run(threads);
}

void ModelVersion::submit(InferRequest request, InferSink& sink) {
  if (options_.default_timeout_ns != kNoDeadline) {
    request.deadline_ns = std::min(request.deadline_ns, scheduler_.clock().now_ns() + options_.default_timeout_ns);
  }
  const bool may_run_here = is_short(request);
  scheduler_.submit(std::make_unique<InferTask>(*this, std::move(request), sink), may_run_here);
}

bool ModelVersion::is_short(const InferRequest& request) const {
  if (!signature().has_bounded_work || typical_compute_ns_.load(std::memory_order_relaxed) > kShortRunNs) return false;
  size_t size_bytes = 0;
  for (const InferTensor& input : request.inputs) {
    if (input.tensor.defined()) size_bytes += input.tensor.size_bytes();
  }
  return size_bytes <= kShortInputBytes;
}

void ModelVersion::note_compute(int64_t ns) {
  const int64_t before = typical_compute_ns_.load(std::memory_order_relaxed);
  // A moving average; an update lost between threads does no harm.
  const int64_t after = before == INT64_MAX ? ns : before + (ns - before) / 8;
  typical_compute_ns_.store(after, std::memory_order_relaxed);
}

RunResult ModelVersion::run_session(size_t worker, std::span<const InferTensor* const> inputs,
                                    const std::function<bool()>& is_cancelled) {
  if (!options_.cores) {
    set_thread_budget(options_.threads_per_worker);
    return sessions_[worker]->run(inputs, is_cancelled);
  }
  const CoreBudget::Share share = options_.cores->take(options_.threads_per_worker);
  set_thread_budget(share.threads());
  return sessions_[worker]->run(inputs, is_cancelled);
}

void ModelVersion::count_run() {
  // New shapes come early if at all: look after the first run, the second, the fourth …
  const uint64_t runs = runs_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!signature().keeps_state && (runs & (runs - 1)) == 0) model_->settle();
}

InferResult ModelVersion::run(size_t worker, const InferRequest& request, const InferSink& sink) {
  InferResult result;
  try {
    const MemoryOwnerScope owner_scope(owner_);
    std::vector<const InferTensor*> inputs(signature().inputs.size(), nullptr);
    for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
    RunResult run = run_session(worker, inputs, [&sink] { return sink.is_cancelled(); });
    result.outputs = select_outputs(std::move(run.outputs), signature(), name_, request.requested_outputs);
    result.copied_bytes = run.copied_bytes;
  } catch (...) {
    result.status = current_exception_status();
    result.outputs.clear();
  }
  return result;
}

}  // namespace tensord::server
