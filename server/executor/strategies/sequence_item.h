#pragma once

#include <utility>

#include "core/base/clock.h"
#include "server/executor/requests/request.h"
#include "server/metrics/model_metrics.h"
#include "server/scheduler/sequence_policy.h"

namespace tensord::server {

// A request of a sequence, with the sink for its answer.
class SequenceItem final : public SequenceRequest {
 public:
  SequenceItem(InferRequest&& taken, InferSink& waiting, ModelMetrics& metrics)
      : request(std::move(taken)), sink(waiting), pending(metrics) {}

  bool is_cancelled() const override { return sink.is_cancelled(); }
  bool is_dead() const {
    return sink.is_cancelled() ||
           (request.deadline_ns != kNoDeadline && Clock::system().now_ns() >= request.deadline_ns);
  }
  // An input of the request's signature; null if it is left out.
  const InferTensor* input(size_t index) const {
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      if (request.input_indices[i] == index) return &request.inputs[i];
    }
    return nullptr;
  }

  InferRequest request;
  InferSink& sink;
  PendingRequest pending;  // moved out when the request runs
};

}  // namespace tensord::server
