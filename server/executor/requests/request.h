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

// InferParameter's choices; monostate when none was set.
using ParameterValue = std::variant<std::monostate, bool, int64_t, std::string, double, uint64_t>;
using ParameterMap = std::map<std::string, ParameterValue>;

// Which sequence a request belongs to: a number other than 0, or a text that is not empty. Neither: none.
struct CorrelationId {
  uint64_t number = 0;
  std::string text;
  bool is_none() const { return number == 0 && text.empty(); }
  auto operator<=>(const CorrelationId&) const = default;
};

// A request whose inputs are checked and decoded.
struct InferRequest {
  std::string id;  // the client's, for logs and traces
  std::vector<InferTensor> inputs;
  std::vector<size_t> input_indices;           // of each input: which of the signature it is
  std::vector<std::string> requested_outputs;  // empty: all
  int64_t batch_size = 1;                      // rows of each input; 1 without a batch dimension
  uint64_t priority = 0;                       // 1 is highest; 0: the model's default
  int64_t arrived_ns = 0;                      // on Clock::system(), as all times
  int64_t deadline_ns = kNoDeadline;           // the client does not wait longer; not run after it, stopped at it
  uint64_t queue_timeout_us = 0;  // the request's `timeout`: how long it may wait in the queue; 0: not said
  CorrelationId sequence;
  bool is_sequence_start = false, is_sequence_end = false;
  int ensemble_depth = 0;                       // of how many ensembles it is a step
  ParameterMap parameters = {};                 // the client's own
  std::vector<OutputPlace> output_places = {};  // where the model may put outputs
  std::shared_ptr<RequestTrace> trace;          // null: not traced
};

// An answer, and what it cost.
struct InferResult {
  absl::Status status;
  std::vector<InferTensor> outputs;
  ParameterMap parameters = {};  // of the response
  uint64_t copied_bytes = 0;
  RequestTimes times;
  bool is_empty = false;  // ends the answers of a decoupled model and is none itself
};

// Who waits for answers.
class InferSink {
 public:
  virtual ~InferSink() = default;
  // Called on any thread, by one at a time, and must not throw. Only a decoupled model answers more than once; exactly
  // one answer `is_final`, also when the status is an error, and after that call the sink may be gone.
  virtual void respond(InferResult result, bool is_final) = 0;
  // May turn true at any time. Who makes it true calls ModelVersion::record_cancelled() afterwards.
  virtual bool is_cancelled() const = 0;
  // Room for so many bytes that are kept for the client after the request, until it is let go. Throws
  // Error{kResourceExhausted} when there is none. Null: nobody counts.
  virtual std::shared_ptr<const void> hold_memory(uint64_t) { return nullptr; }
};

}  // namespace tensord::server
