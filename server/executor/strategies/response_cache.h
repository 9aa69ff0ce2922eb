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

// Answers of models, kept for requests with the same inputs. One for the whole server; what was not asked for the
// longest goes first. Thread-safe.
class ResponseCache {
 public:
  // Of the model version, the inputs and the wanted outputs.
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

  // Tells one load of a model from all others.
  uint64_t add_model();
  // Drops the answers of a model, which is no longer served.
  void remove_model(uint64_t model);

  // Inputs by their values, in the order of the signature. Their tensors must be contiguous. REQUIRES: no input's
  // memory can change.
  Key key_of(uint64_t model, const InferRequest& request) const;
  // The tensors are shared with the cache, and not writable.
  std::optional<std::vector<InferTensor>> find(const Key& key);
  // Keeps a copy, unless it is larger than the cache.
  void insert(const Key& key, const std::vector<InferTensor>& outputs);

  uint64_t size_bytes() const;
  uint64_t max_bytes() const { return max_bytes_; }

 private:
  struct Entry {
    Key key;
    std::vector<InferTensor> outputs;
    uint64_t size_bytes = 0;
  };
  using Entries = std::list<Entry>;  // what was asked for last comes first
  void drop(Entries::iterator entry) TENSORD_REQUIRES(mutex_);

  const uint64_t max_bytes_;
  const uint64_t seed_;  // random, so that nobody can look for inputs with the same key
  const OwnerId owner_;
  mutable Mutex mutex_;
  uint64_t next_model_ TENSORD_GUARDED_BY(mutex_) = 1;
  Entries entries_ TENSORD_GUARDED_BY(mutex_);
  std::unordered_map<Key, Entries::iterator, HashKey> by_key_ TENSORD_GUARDED_BY(mutex_);
  uint64_t size_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
};

// Looks requests up before they go the path `next`, and keeps its answers. Of those with the same inputs that come
// while one of them is under way, only that one goes on; the others wait for its answer, where their deadlines allow.
std::unique_ptr<ExecutionStrategy> make_cached_strategy(std::unique_ptr<ExecutionStrategy> next, ResponseCache& cache,
                                                        ModelMetrics& metrics);

}  // namespace tensord::server
