#include "server/executor/model_workers.h"

#include <future>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/parallel.h"

namespace tensord::server {
namespace {

// Automatic warm-up leaves out batches that would take longer.
constexpr int64_t kMaxWarmupNs = 2'000'000'000;

}  // namespace

ModelWorkers::ModelWorkers(const std::string& name, const Model& model, Options options, OwnerId owner)
    : name_(name), model_(model), options_(std::move(options)), owner_(owner) {
  for (int i = 0; i < options_.workers; ++i) sessions_.push_back(model.make_session());
}

void ModelWorkers::warm_up() {
  if (!sessions_.empty()) warm_up_worker(0);
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < sessions_.size(); ++i) {
    others.push_back(std::async(std::launch::async, [this, i] { warm_up_worker(i); }));
  }
  for (std::future<void>& other : others) other.get();
}

void ModelWorkers::end_warm_up() {
  if (!options_.warmup.empty()) model_.settle();
  options_.warmup.clear();
}

void ModelWorkers::start_thread() const {
  set_thread_budget(options_.threads_per_worker);
  parallel_run(options_.threads_per_worker, [](int) {});
}

void ModelWorkers::warm_up_worker(size_t worker) {
  const MemoryOwnerScope owner_scope(owner_);
  run_requests(worker);
  sessions_[worker]->end_warmup();
}

void ModelWorkers::run_requests(size_t worker) {
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

void ModelWorkers::warm_up_with(size_t worker, const WarmupRequest& request) {
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

RunResult ModelWorkers::run(size_t worker, std::span<const InferTensor* const> inputs,
                            const std::function<bool()>& is_cancelled, std::span<const OutputPlace> places) {
  const MemoryOwnerScope owner_scope(owner_);
  if (!places.empty()) sessions_[worker]->place_outputs(places);
  if (!options_.cores) {
    set_thread_budget(options_.threads_per_worker);
    return sessions_[worker]->run(inputs, is_cancelled);
  }
  const CoreBudget::Share share = options_.cores->take(options_.threads_per_worker);
  set_thread_budget(share.threads());
  return sessions_[worker]->run(inputs, is_cancelled);
}

void ModelWorkers::note_answered() {
  // New shapes come early if at all: look after the first run, the second, the fourth …
  const uint64_t runs = answered_runs_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!signature().keeps_state && (runs & (runs - 1)) == 0) model_.settle();
}

}  // namespace tensord::server
