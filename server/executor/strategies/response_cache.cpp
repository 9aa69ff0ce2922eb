#include "server/executor/strategies/response_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/tensor/lend.h"

namespace tensord::server {
namespace {

// Approximate overhead of an entry besides its tensors.
constexpr uint64_t kEntryBytes = 256;
constexpr uint64_t kTensorBytes = 256;

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Hashes every field with its length, so that no two requests hash the same bytes.
class RequestHash {
 public:
  explicit RequestHash(uint64_t seed) : state_(XXH3_createState(), &XXH3_freeState) {
    XXH3_128bits_reset_withSeed(state_.get(), seed);
  }
  void add(const void* data, size_t size_bytes) { XXH3_128bits_update(state_.get(), data, size_bytes); }
  void add(uint64_t number) { add(&number, sizeof(number)); }
  void add(const std::string& text) {
    add(uint64_t{text.size()});
    add(text.data(), text.size());
  }
  void add(const InferTensor& tensor) {
    add(static_cast<uint64_t>(tensor.datatype));
    add(uint64_t{tensor.shape.size()});
    for (const int64_t size : tensor.shape) add(static_cast<uint64_t>(size));
    for (const std::string& text : tensor.strings) add(text);
    if (tensor.scattered) {
      for (const auto& piece : tensor.scattered->pieces) add(piece.data(), piece.size());
    } else if (tensor.tensor.defined()) {
      add(tensor.tensor.raw_data(), tensor.tensor.size_bytes());
    }
  }
  XXH128_hash_t digest() const { return XXH3_128bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

uint64_t size_of_outputs(const std::vector<InferTensor>& outputs) {
  uint64_t size = kEntryBytes;
  for (const InferTensor& output : outputs) {
    size += kTensorBytes + output.name.size();
    if (output.tensor.defined()) size += output.tensor.size_bytes();
    for (const std::string& text : output.strings) size += sizeof(std::string) + text.size();
  }
  return size;
}

// A copy, because the tensor may be a view of a larger one or overwritten by a later run. The copy is read-only.
Tensor own_copy(const Tensor& tensor) { return read_only(tensor.clone()); }

}  // namespace

ResponseCache::ResponseCache(uint64_t max_bytes)
    : max_bytes_(max_bytes), seed_(random_seed()), owner_(memory_owner("response_cache")) {}

ResponseCache::~ResponseCache() = default;

uint64_t ResponseCache::add_model() {
  const MutexLock lock(mutex_);
  return next_model_++;
}

void ResponseCache::remove_model(uint64_t model) {
  const MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (here->key.model == model) drop(here);
  }
}

ResponseCache::Key ResponseCache::key_of(uint64_t model, const InferRequest& request) const {
  RequestHash hash(seed_);
  std::vector<size_t> order(request.inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return request.input_indices[i]; });
  hash.add(uint64_t{order.size()});
  for (const size_t i : order) {
    hash.add(uint64_t{request.input_indices[i]});
    hash.add(request.inputs[i]);
  }
  for (const std::string& name : request.requested_outputs) hash.add(name);
  const XXH128_hash_t digest = hash.digest();
  return {.model = model, .low = digest.low64, .high = digest.high64};
}

std::optional<std::vector<InferTensor>> ResponseCache::find(const Key& key) {
  const MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->outputs;
}

void ResponseCache::insert(const Key& key, const std::vector<InferTensor>& outputs) {
  const uint64_t size_bytes = size_of_outputs(outputs);
  if (size_bytes > max_bytes_) return;
  const MemoryOwnerScope owner_scope(owner_);
  Entry entry{.key = key, .outputs = outputs, .size_bytes = size_bytes};
  for (InferTensor& output : entry.outputs) {
    if (output.tensor.defined()) output.tensor = own_copy(output.tensor);
  }
  const MutexLock lock(mutex_);
  if (by_key_.contains(key)) return;  // two equal requests ran at the same time
  while (size_bytes_ > max_bytes_ - size_bytes) drop(std::prev(entries_.end()));
  entries_.push_front(std::move(entry));
  by_key_[key] = entries_.begin();
  size_bytes_ += size_bytes;
}

void ResponseCache::drop(Entries::iterator entry) {
  size_bytes_ -= entry->size_bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

uint64_t ResponseCache::size_bytes() const {
  const MutexLock lock(mutex_);
  return size_bytes_;
}

namespace {

class CachedStrategy final : public ExecutionStrategy {
 public:
  CachedStrategy(std::unique_ptr<ExecutionStrategy> next, ResponseCache& cache, ModelMetrics& metrics)
      : next_(std::move(next)), cache_(cache), metrics_(metrics), model_(cache.add_model()) {}
  ~CachedStrategy() override { cache_.remove_model(model_); }

  void submit(InferRequest&& request, InferSink& sink) override {
    const int64_t start_ns = Clock::system().now_ns();
    own_inputs(request);
    const ResponseCache::Key key = cache_.key_of(model_, request);
    look_up(std::move(request), key, start_ns, sink, /*may_wait=*/true);
  }

  void record_cancelled() override {
    for (const Waiter& waiter : take_cancelled()) {
      InferResult result;
      result.status = absl::CancelledError("the request was cancelled");
      result.times.arrived_ns = waiter.request.arrived_ns;
      waiter.sink->respond(std::move(result), /*is_final=*/true);
    }
    next_->record_cancelled();
  }
  bool gathers_inputs() const override { return next_->gathers_inputs(); }
  void stop() override { next_->stop(); }

 private:
  // A request that waits for another one with the same inputs.
  struct Waiter {
    InferRequest request;
    InferSink* sink;
  };

  // Stores the response, forwards it and deletes itself.
  class KeepingSink final : public InferSink {
   public:
    KeepingSink(CachedStrategy& path, const ResponseCache::Key& key, int64_t lookup_ns, const InferRequest& request,
                InferSink& sink)
        : path_(path),
          key_(key),
          lookup_ns_(lookup_ns),
          deadline_ns_(request.deadline_ns),
          queue_timeout_us_(request.queue_timeout_us),
          priority_(request.priority),
          sink_(sink) {}

    // Whether the waiting request would be answered and cancelled no earlier if it ran by itself.
    bool may_answer(const InferRequest& request) const {
      return request.deadline_ns >= deadline_ns_ && request.queue_timeout_us == queue_timeout_us_ &&
             request.priority == priority_;
    }
    std::vector<Waiter>& waiters() { return waiters_; }  // guarded by the strategy's mutex

    void respond(InferResult result, bool is_final) override {
      const std::unique_ptr<KeepingSink> self(is_final ? this : nullptr);
      if (result.status.ok() && result.parameters.empty()) {
        const int64_t start_ns = Clock::system().now_ns();
        path_.cache_.insert(key_, result.outputs);
        path_.metrics_.count_cache_miss(lookup_ns_ + Clock::system().now_ns() - start_ns);
      }
      std::vector<Waiter> waiters;
      if (is_final) waiters = path_.end(*this);
      sink_.respond(std::move(result), is_final);
      // They find the response in the cache, or all run at once if it was not stored.
      for (Waiter& waiter : waiters) {
        path_.look_up(std::move(waiter.request), key_, Clock::system().now_ns(), *waiter.sink,
                      /*may_wait=*/false);
      }
    }
    bool is_cancelled() const override { return sink_.is_cancelled(); }
    const ResponseCache::Key& key() const { return key_; }

   private:
    CachedStrategy& path_;
    const ResponseCache::Key key_;
    const int64_t lookup_ns_;
    const int64_t deadline_ns_;
    const uint64_t queue_timeout_us_, priority_;
    InferSink& sink_;
    std::vector<Waiter> waiters_;
  };

  void look_up(InferRequest&& request, const ResponseCache::Key& key, int64_t start_ns, InferSink& sink,
               bool may_wait) {
    std::optional<std::vector<InferTensor>> outputs;
    KeepingSink* runs = nullptr;
    {
      // A response is stored before its request leaves the in-flight table, so one of the two lookups finds it.
      const MutexLock lock(mutex_);
      outputs = cache_.find(key);
      const int64_t lookup_ns = Clock::system().now_ns() - start_ns;
      if (outputs) {
        metrics_.count_cache_hit(lookup_ns);
      } else {
        const auto found = under_way_.find(key);
        if (may_wait && found != under_way_.end() && found->second->may_answer(request)) {
          found->second->waiters().push_back({std::move(request), &sink});
          return;
        }
        runs = new KeepingSink(*this, key, lookup_ns, request, sink);
        if (found == under_way_.end()) under_way_[key] = runs;
      }
    }
    if (runs) {
      next_->submit(std::move(request), *runs);
      return;
    }
    InferResult result;
    result.outputs = std::move(*outputs);
    result.times.arrived_ns = request.arrived_ns;
    sink.respond(std::move(result), /*is_final=*/true);
  }

  // The requests that waited for the finished one.
  std::vector<Waiter> end(KeepingSink& run) {
    const MutexLock lock(mutex_);
    const auto found = under_way_.find(run.key());
    if (found != under_way_.end() && found->second == &run) under_way_.erase(found);
    return std::move(run.waiters());
  }

  std::vector<Waiter> take_cancelled() {
    std::vector<Waiter> cancelled;
    const MutexLock lock(mutex_);
    for (const auto& [key, run] : under_way_) {
      std::vector<Waiter>& waiters = run->waiters();
      const auto first = std::partition(waiters.begin(), waiters.end(),
                                        [](const Waiter& waiter) { return !waiter.sink->is_cancelled(); });
      cancelled.insert(cancelled.end(), std::make_move_iterator(first), std::make_move_iterator(waiters.end()));
      waiters.erase(first, waiters.end());
    }
    return cancelled;
  }

  // If a client could change an input during the run, a response would be stored under the key of different inputs.
  void own_inputs(InferRequest& request) const {
    request.output_places.clear();  // a client could change a response before it is stored
    for (InferTensor& input : request.inputs) {
      if (!input.is_shared) continue;
      input.tensor = input.tensor.clone();
      input.is_shared = false;
      metrics_.add_copied(input.tensor.size_bytes());
    }
  }

  const std::unique_ptr<ExecutionStrategy> next_;
  ResponseCache& cache_;
  ModelMetrics& metrics_;
  const uint64_t model_;
  Mutex mutex_;
  std::unordered_map<ResponseCache::Key, KeepingSink*, ResponseCache::HashKey> under_way_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<ExecutionStrategy> make_cached_strategy(std::unique_ptr<ExecutionStrategy> next, ResponseCache& cache,
                                                        ModelMetrics& metrics) {
  return std::make_unique<CachedStrategy>(std::move(next), cache, metrics);
}

}  // namespace tensord::server
