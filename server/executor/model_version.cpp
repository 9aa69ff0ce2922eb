#include "server/executor/model_version.h"

#include "core/base/parallel.h"
#include "server/executor/status.h"

namespace tensord::server {
namespace {

// Runs below this take less time than handing them to another thread.
constexpr int64_t kShortRunNs = 30'000;
// Larger inputs may make a short model long.
constexpr size_t kShortInputBytes = 64 << 10;

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
      options_(options),
      metrics_(metrics),
      owner_(memory_owner(name_ + "/" + version_text_)),
      sessions_(make_sessions(*model_, options.workers)),
      scheduler_(std::make_unique<FifoPolicy>(options.max_queue_size),
                 {.workers = options.workers,
                  .on_worker_start = [this](size_t) { set_thread_budget(options_.threads_per_worker); }}) {}

ModelVersion::~ModelVersion() { scheduler_.stop(); }

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

InferResult ModelVersion::run(size_t worker, const InferRequest& request, const InferSink& sink) {
  InferResult result;
  try {
    const MemoryOwnerScope owner_scope(owner_);
    std::vector<const InferTensor*> inputs(signature().inputs.size(), nullptr);
    for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
    RunResult run = sessions_[worker]->run(inputs, [&sink] { return sink.is_cancelled(); });
    result.outputs = select_outputs(std::move(run.outputs), signature(), name_, request.requested_outputs);
    result.copied_bytes = run.copied_bytes;
  } catch (...) {
    result.status = current_exception_status();
    result.outputs.clear();
  }
  return result;
}

}  // namespace tensord::server
