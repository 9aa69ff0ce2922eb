#pragma once

#include <absl/status/status.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "server/executor/model/model.h"
#include "server/metrics/request_times.h"
#include "server/scheduler/task.h"

namespace tensord::server {

class RequestTrace;

// A value of InferParameter; monostate: not set.
using ParameterValue = std::variant<std::monostate, bool, int64_t, std::string, double, uint64_t>;
using ParameterMap = std::map<std::string, ParameterValue>;

// The sequence that a request belongs to: a nonzero number or a non-empty string. Neither: no sequence.
struct CorrelationId {
  uint64_t number = 0;
  std::string text;
  bool is_none() const { return number == 0 && text.empty(); }
  auto operator<=>(const CorrelationId&) const = default;
};

// A validated request with decoded inputs.
struct InferRequest {
  std::string id;  // of the client, for logs and traces
  std::vector<InferTensor> inputs;
  std::vector<size_t> input_indices;           // by input: its index in the signature
  std::vector<std::string> requested_outputs;  // empty: all
  int64_t batch_size = 1;                      // rows of each input; 1 without batching
  uint64_t priority = 0;                       // 1 is the highest; 0: the model's default
  int64_t arrived_ns = 0;                      // on Clock::system(), like all times here
  int64_t deadline_ns = kNoDeadline;           // not started after it; stopped at it
  uint64_t queue_timeout_us = 0;               // the parameter `timeout`: the longest time in the queue; 0: not set
  CorrelationId sequence;
  bool is_sequence_start = false, is_sequence_end = false;
  int ensemble_depth = 0;                       // number of ensembles that it is a step of
  ParameterMap parameters = {};                 // set by the client
  std::vector<OutputPlace> output_places = {};  // memory that outputs should be written to
  std::shared_ptr<RequestTrace> trace;          // null: not traced
};

// An answer, with its cost.
struct InferResult {
  absl::Status status;
  std::vector<InferTensor> outputs;
  ParameterMap parameters = {};  // parameters of the response
  uint64_t copied_bytes = 0;
  RequestTimes times;
  bool is_empty = false;  // the empty final response of a decoupled model
};

// Receives the answers to one request.
class InferSink {
 public:
  virtual ~InferSink() = default;
  // Called on any thread, never concurrently, and must not throw. Only decoupled models answer more than once. Exactly
  // one call has `is_final`, errors included; the sink may be destroyed right after it.
  virtual void respond(InferResult result, bool is_final) = 0;
  // May become true at any time. Whoever cancels must call ModelVersion::record_cancelled() afterwards.
  virtual bool is_cancelled() const = 0;
  // Charges memory that is kept for the client after the request; releasing the result ends the charge. Throws
  // Error{kResourceExhausted} if the client's quota is used up. Null: nothing is charged.
  virtual std::shared_ptr<const void> hold_memory(uint64_t) { return nullptr; }
};

}  // namespace tensord::server
