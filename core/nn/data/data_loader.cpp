#include "core/nn/data/data_loader.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/nn/state.h"
#include "core/tensor/allocator.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {
namespace {

using Batch = std::vector<Tensor>;

constexpr auto kInterruptionInterval = std::chrono::milliseconds(20);  // of looks at is_interrupted

// A batch in progress. The worker that makes it writes `batch` or `error`; both are read once it is done.
struct Job {
  std::vector<int64_t> indices;
  uint64_t seed = 0;
  ExecutionContext context;  // of the thread that requested it
  Batch batch;
  std::exception_ptr error;
  bool is_done = false;  // guarded by the mutex of Workers
};

// Threads that take jobs in order.
class Workers {
 public:
  Workers(int count, std::function<Batch(const Job&)> make) : make_(std::move(make)) {
    try {
      for (int i = 0; i < count; ++i) threads_.emplace_back("data-loader", [this] { work(); });
    } catch (const Error& error) {
      stop();
      throw Error(error.code(), concat("data loader: cannot start ", count, " threads: ", error.what()));
    }
  }
  ~Workers() { stop(); }

  void add(std::shared_ptr<Job> job) {
    {
      const MutexLock lock(mutex_);
      waiting_.push_back(std::move(job));
    }
    changed_.notify_all();
  }
  // Drops the jobs that no worker has started.
  void drop_waiting() {
    const MutexLock lock(mutex_);
    waiting_.clear();
  }
  // Returns false if interrupted.
  bool wait(const Job& job, const std::function<bool()>& is_interrupted) {
    MutexLock lock(mutex_);
    const auto is_done = [&]() TENSORD_REQUIRES(mutex_) { return job.is_done; };
    if (!is_interrupted) {
      changed_.wait(lock, is_done);
      return true;
    }
    while (!changed_.wait_for(lock, kInterruptionInterval, is_done)) {
      if (is_interrupted()) return false;
    }
    return true;
  }

 private:
  void stop() {
    {
      const MutexLock lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    for (Thread& thread : threads_) thread.join();
  }

  void work() {
    MutexLock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&]() TENSORD_REQUIRES(mutex_) { return is_stopping_ || !waiting_.empty(); });
      if (is_stopping_) return;
      const std::shared_ptr<Job> job = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        const ExecutionScope scope(job->context);
        const CancellationScope stop([this] { return is_stopping_.load(); });
        job->batch = make_(*job);
      } catch (...) {
        job->error = std::current_exception();
      }
      lock.lock();
      job->is_done = true;
      changed_.notify_all();
    }
  }

  const std::function<Batch(const Job&)> make_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Job>> waiting_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<bool> is_stopping_ = false;  // written under the mutex
  std::vector<Thread> threads_;
};

std::shared_ptr<Sampler> sampler_of(const Dataset& dataset, const DataLoaderOptions& options) {
  check(!options.sampler || !options.shuffle, "sampler option is mutually exclusive with shuffle");
  if (options.sampler) return options.sampler;
  if (options.shuffle) return std::make_shared<RandomSampler>(dataset.size(), options.generator);
  return std::make_shared<SequentialSampler>(dataset.size());
}

}  // namespace

struct DataLoader::Impl {
  Impl(const Dataset& dataset, DataLoaderOptions given)
      : dataset(dataset),
        options(std::move(given)),
        batches(sampler_of(dataset, options), options.batch_size, options.drop_last) {
    check(options.workers >= 0, "workers cannot be negative");
    check(options.prefetch_factor > 0, "prefetch_factor must be positive");
    if (options.workers > 0) {
      workers = std::make_unique<Workers>(options.workers, [this](const Job& job) { return make(job); });
    }
  }

  Batch make(const Job& job) const {
    ops::Generator generator(job.seed);
    const ops::GeneratorGuard guard(generator);
    return options.collate ? options.collate(dataset.get_samples(job.indices)) : dataset.get_batch(job.indices);
  }

  // The job of the next batch; null at the end of the epoch.
  std::shared_ptr<Job> next_job() {
    auto job = std::make_shared<Job>();
    job->indices = batches.next();
    if (job->indices.empty()) return nullptr;
    job->seed = base_seed + issued++;
    job->context = ExecutionContext::detached();
    job->context.threads = 1;
    job->context.grad_mode.is_enabled = false;
    return job;
  }

  void drop_epoch() {
    if (workers) workers->drop_waiting();
    ahead.clear();
  }

  std::optional<Batch> next(const std::function<bool()>& is_interrupted) {
    const size_t limit =
        workers ? static_cast<size_t>(options.workers) * static_cast<size_t>(options.prefetch_factor) : 1;
    while (ahead.size() < limit) {
      std::shared_ptr<Job> job = next_job();
      if (!job) break;
      if (workers) workers->add(job);
      ahead.push_back(std::move(job));
    }
    if (ahead.empty()) {
      is_in_epoch = false;
      return std::nullopt;
    }
    const std::shared_ptr<Job> job = ahead.front();
    if (workers && !workers->wait(*job, is_interrupted)) return std::nullopt;
    ahead.pop_front();
    ++consumed;
    if (!workers) {
      const NoGradGuard without_grad;
      return make(*job);
    }
    if (job->error) std::rethrow_exception(job->error);
    return std::move(job->batch);
  }

  const Dataset& dataset;
  const DataLoaderOptions options;
  BatchSampler batches;
  bool is_in_epoch = false;
  uint64_t base_seed = 0;
  uint64_t issued = 0;   // batches of the epoch that were started
  int64_t consumed = 0;  // batches of the epoch that next() has returned
  ops::Value epoch_state;
  std::deque<std::shared_ptr<Job>> ahead;  // in the epoch's order
  std::unique_ptr<Workers> workers;        // declared last, destroyed first: it uses the other members
};

DataLoader::DataLoader(const Dataset& dataset, DataLoaderOptions options)
    : impl_(std::make_unique<Impl>(dataset, std::move(options))) {}
DataLoader::~DataLoader() = default;

int64_t DataLoader::size() const { return impl_->batches.size(); }
bool DataLoader::is_in_epoch() const { return impl_->is_in_epoch; }

void DataLoader::start_epoch() {
  Impl& i = *impl_;
  i.drop_epoch();
  i.base_seed = draw_seed(i.options.generator ? *i.options.generator : ops::current_generator());
  i.batches.start_epoch();
  i.epoch_state = i.batches.sampler().state_dict();
  i.issued = 0;
  i.consumed = 0;
  i.is_in_epoch = true;
}

std::optional<std::vector<Tensor>> DataLoader::next(const std::function<bool()>& is_interrupted) {
  if (!impl_->is_in_epoch) return std::nullopt;
  return impl_->next(is_interrupted);
}

ops::Value DataLoader::state_dict() const {
  const Impl& i = *impl_;
  const ops::Dict state = new_state();
  set_item(state, "is_in_epoch", i.is_in_epoch);
  set_item(state, "batches", i.consumed);
  set_item(state, "base_seed", static_cast<int64_t>(i.base_seed));
  set_item(state, "sampler", i.is_in_epoch ? i.epoch_state : i.batches.sampler().state_dict());
  return ops::Value(state);
}

void DataLoader::load_state_dict(const ops::Value& state) {
  Impl& i = *impl_;
  const ops::DictObject& dict = as_dict(state, "data loader");
  const bool is_in_epoch = get_bool(dict, "is_in_epoch");
  const int64_t consumed = get_integer(dict, "batches");
  const ops::Value& seed = get_item(dict, "base_seed");
  const ops::Value& epoch_state = get_item(dict, "sampler");
  check(seed.is_int() && consumed >= 0 && consumed <= size(), "the data loader's state is not of this dataset");
  i.drop_epoch();
  i.batches.sampler().load_state_dict(epoch_state);
  i.is_in_epoch = is_in_epoch;
  i.base_seed = static_cast<uint64_t>(seed.to_int());
  i.epoch_state = epoch_state;
  i.consumed = 0;
  i.issued = 0;
  if (!is_in_epoch) return;
  for (; i.consumed < consumed; ++i.consumed, ++i.issued) i.batches.next();
}

}  // namespace tensord::nn
