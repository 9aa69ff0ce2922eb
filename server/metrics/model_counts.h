#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/metrics/duration_intervals.h"

namespace tensord::server {

inline constexpr int kStatusCodes = 17;  // gRPC's, 0 is OK

// What durations are counted of.
enum class Phase {
  kRequest,        // from arrival to the final answer
  kQueue,          // waiting for a worker; requests that gave up there too
  kComputeInput,   // of runs, like the next two: gathering the inputs
  kCompute,        // the model's own time
  kComputeOutput,  // taking its outputs apart
  kFirstResponse,  // of decoupled models: from arrival to the first answer
  kNextResponse,   // of decoupled models: from one answer to the next
};
inline constexpr size_t kPhases = 7;

// Why a request failed, as Triton's metrics name it.
enum class FailureReason { kRejected, kCanceled, kBackend, kOther };
inline constexpr size_t kFailureReasons = 4;
const char* to_string(FailureReason reason);  // "REJECTED"

// How often something happened, and how long it took altogether.
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

// Of the n-th answers of a decoupled model.
struct ResponseCounts {
  DurationSum compute_infer, compute_output, success, fail, empty_response, cancel;
};

// All that was counted of one model version up to some moment.
struct ModelCounts {
  std::string name, version;
  std::map<std::string, std::string> tags;  // labels that the model's configuration adds
  std::array<uint64_t, kStatusCodes> requests{};
  std::array<uint64_t, kFailureReasons> failures{};
  std::array<DurationHistogram, kPhases> phases{};
  // Of requests, as Triton's statistics have them: times of requests that shared a run are counted for each of them.
  DurationSum success, fail, queue, compute_input, compute_infer, compute_output, cache_hit, cache_miss;
  uint64_t inference_count = 0;  // rows of successful runs
  uint64_t execution_count = 0;  // successful runs
  uint64_t failed_executions = 0;
  std::map<uint64_t, BatchCounts> batches;  // by batch size
  std::vector<ResponseCounts> responses;    // by index
  uint64_t last_request_unix_ms = 0;        // 0: none yet
  uint64_t received_bytes = 0, sent_bytes = 0, copied_bytes = 0;
  int64_t in_flight = 0, pending = 0;
  uint64_t workers = 0;  // 0 while the model is not ready
  double load_seconds = 0;
  bool is_ready = false;
  bool has_cache = false;

  const DurationHistogram& operator[](Phase phase) const { return phases[static_cast<size_t>(phase)]; }
};

}  // namespace tensord::server
