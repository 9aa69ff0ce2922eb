#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "core/base/mutex.h"
#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"

namespace tensord::server {

// What the first answered request shows of a model whose configuration and file leave types and dimensions open. It
// changes what is said of the model, not what is accepted. Thread-safe.
class LearnedSignature {
 public:
  // Of a tensor as it was sent or came back.
  struct Seen {
    std::string name;
    DataType datatype;
    int rank;
  };

  // Where the signature leaves something open, requests are watched from now on.
  void begin(const Signature& signature);
  bool is_complete() const { return is_complete_.load(std::memory_order_acquire); }
  // The sink to answer instead of `sink`, which learns from the first answer and goes away with the final one.
  InferSink& watch(const InferRequest& request, InferSink& sink);
  // The signature with what the graph tells of inputs (TensorSpec::known) and what was learned, where it is open.
  Signature described(const Signature& signature) const;

 private:
  class Watch;
  void learn(const Watch& watch, std::span<const InferTensor> outputs);
  void describe_output(TensorSpec& spec) const TENSORD_REQUIRES(mutex_);

  std::atomic<bool> is_complete_{true};
  mutable Mutex mutex_;
  std::vector<std::optional<Seen>> inputs_ TENSORD_GUARDED_BY(mutex_);  // as the signature has them
  std::vector<Seen> outputs_ TENSORD_GUARDED_BY(mutex_);
  bool has_all_outputs_ TENSORD_GUARDED_BY(mutex_) = false;  // the request named none that it wanted
};

}  // namespace tensord::server
