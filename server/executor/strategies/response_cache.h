#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"

#include "server/executor/strategies/execution_strategy.h"

namespace tensord::server {

// Cached answers, keyed by a request's inputs. One cache serves all models; the least recently used entry is evicted
// first. Thread-safe.
class ResponseCache {
 public:
  // Hash of the model version, the inputs and the requested outputs.
  struct Key {
    uint64_t model = 0;
    uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    size_t operator()(const Key& key) const { return key.low ^ key.model; }
  };

  explicit ResponseCache(uint64_t max_bytes);
  ~ResponseCache();

  // An id for one load of a model.
  uint64_t add_model();
  // Removes the answers of a model that is no longer served.
  void remove_model(uint64_t model);

  // Hashes the values of the inputs in the order of the signature. REQUIRES: the inputs are contiguous, and their
  // memory cannot change.
  Key key_of(uint64_t model, const InferRequest& request) const;
  // The tensors share memory with the cache and are read-only.
  std::optional<std::vector<InferTensor>> find(const Key& key);
  // Stores a copy, unless it is larger than the cache.
  void insert(const Key& key, const std::vector<InferTensor>& outputs);

  uint64_t size_bytes() const;
  uint64_t max_bytes() const { return max_bytes_; }

 private:
  struct Entry {
    Key key;
    std::vector<InferTensor> outputs;
    uint64_t size_bytes = 0;
  };
  using Entries = std::list<Entry>;  // most recently used first
  void drop(Entries::iterator entry) TENSORD_REQUIRES(mutex_);

  const uint64_t max_bytes_;
  const uint64_t seed_;  // random, so that clients cannot construct inputs with equal keys
  const OwnerId owner_;
  mutable Mutex mutex_;
  uint64_t next_model_ TENSORD_GUARDED_BY(mutex_) = 1;
  Entries entries_ TENSORD_GUARDED_BY(mutex_);
  std::unordered_map<Key, Entries::iterator, HashKey> by_key_ TENSORD_GUARDED_BY(mutex_);
  uint64_t size_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
};

// Looks requests up in the cache, passes the others to `next`, and stores the answers. Of concurrent requests with
// equal inputs only one runs; the others wait for its answer, as long as their deadlines allow.
std::unique_ptr<ExecutionStrategy> make_cached_strategy(std::unique_ptr<ExecutionStrategy> next, ResponseCache& cache,
                                                        ModelMetrics& metrics);

}  // namespace tensord::server
