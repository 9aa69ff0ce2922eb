#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "core/base/mutex.h"
#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"

namespace tensord::server {

// Learns types and dimensions that a model's configuration and file leave open from the first answered request. It
// changes the model's description, not which requests are valid. Thread-safe.
class LearnedSignature {
 public:
  // What a request or its answer showed of a tensor.
  struct Seen {
    std::string name;
    DataType datatype;
    int rank;
  };

  // If the signature leaves something open, starts to observe requests.
  void begin(const Signature& signature);
  bool is_complete() const { return is_complete_.load(std::memory_order_acquire); }
  // Returns a sink to pass instead of `sink`. It learns from the first answer and destroys itself with the final one.
  InferSink& watch(const InferRequest& request, InferSink& sink);
  // The signature with its open parts filled in from the graph (TensorSpec::known) and from what was learned.
  Signature described(const Signature& signature) const;

 private:
  class Watch;
  void learn(const Watch& watch, std::span<const InferTensor> outputs);
  void describe_output(TensorSpec& spec) const TENSORD_REQUIRES(mutex_);

  std::atomic<bool> is_complete_{true};
  mutable Mutex mutex_;
  std::vector<std::optional<Seen>> inputs_ TENSORD_GUARDED_BY(mutex_);  // in the order of the signature
  std::vector<Seen> outputs_ TENSORD_GUARDED_BY(mutex_);
  bool has_all_outputs_ TENSORD_GUARDED_BY(mutex_) = false;  // the request did not select outputs
};

}  // namespace tensord::server
