#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/metrics/duration_intervals.h"

namespace tensord::server {

inline constexpr int kStatusCodes = 17;  // gRPC status codes; 0 is OK

// Phases of a request whose durations are counted.
enum class Phase {
  kRequest,        // from arrival to the final answer
  kQueue,          // waiting for a worker; includes requests cancelled there
  kComputeInput,   // of a run, as are the next two: gathering the inputs
  kCompute,        // running the model
  kComputeOutput,  // splitting the outputs
  kFirstResponse,  // decoupled models: from arrival to the first response
  kNextResponse,   // decoupled models: from one response to the next
};
inline constexpr size_t kPhases = 7;

// Why a request failed, as Triton's metrics name it.
enum class FailureReason { kRejected, kCanceled, kBackend, kOther };
inline constexpr size_t kFailureReasons = 4;
const char* to_string(FailureReason reason);  // "REJECTED"

// Number and total duration of an event.
struct DurationSum {
  uint64_t count = 0;
  uint64_t ns = 0;
};

struct DurationHistogram {
  IntervalCounts intervals{};
  uint64_t sum_ns = 0;
  uint64_t count() const;
};

// Runs with one batch size.
struct BatchCounts {
  uint64_t count = 0;
  uint64_t input_ns = 0, infer_ns = 0, output_ns = 0;
};

// The n-th responses of a decoupled model.
struct ResponseCounts {
  DurationSum compute_infer, compute_output, success, fail, empty_response, cancel;
};

// The last request that failed, cancelled ones aside.
struct LastFailure {
  std::string error;     // of at most kMaxErrorBytes; may hold any bytes
  uint64_t unix_ms = 0;  // 0: none failed
};
inline constexpr size_t kMaxErrorBytes = 500;

// A snapshot of the counters of one model version.
struct ModelCounts {
  std::string name, version;
  std::map<std::string, std::string> tags;  // labels from the model's configuration
  std::array<uint64_t, kStatusCodes> requests{};
  std::array<uint64_t, kFailureReasons> failures{};
  std::array<DurationHistogram, kPhases> phases{};
  // Per request, as in Triton's statistics: the time of a batch counts once for each request in it.
  DurationSum success, fail, queue, compute_input, compute_infer, compute_output, cache_hit, cache_miss;
  uint64_t inference_count = 0;  // rows in successful runs
  uint64_t execution_count = 0;  // successful runs
  uint64_t failed_executions = 0;
  std::map<uint64_t, BatchCounts> batches;  // by batch size
  std::vector<ResponseCounts> responses;    // by index
  uint64_t last_request_unix_ms = 0;        // 0 before the first request
  LastFailure last_failure;
  uint64_t received_bytes = 0, sent_bytes = 0, copied_bytes = 0;
  int64_t in_flight = 0, pending = 0;
  uint64_t workers = 0;  // 0 while the model is not ready
  double load_seconds = 0;
  std::string precision;  // chosen by `precision: auto`; empty without it
  bool is_ready = false;
  bool has_cache = false;

  const DurationHistogram& operator[](Phase phase) const { return phases[static_cast<size_t>(phase)]; }
};

}  // namespace tensord::server
