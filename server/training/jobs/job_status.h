#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// queued → running → completed | failed | cancelled
//            ↓ ↑
//          paused → queued; failed and cancelled → queued too, from the last checkpoint
enum class JobState { kQueued, kRunning, kPaused, kCompleted, kFailed, kCancelled };
const char* to_string(JobState state);  // "QUEUED"
// Throws Error{kInvalidArgument}.
JobState parse_job_state(const std::string& text);
// Whether the state is terminal unless a client resumes the job.
inline bool is_at_rest(JobState state) { return state != JobState::kQueued && state != JobState::kRunning; }

// One process of a distributed job.
struct RankProgress {
  int64_t rank = 0;
  std::string host;
  int64_t pid = 0;
  int64_t step = 0;
  uint64_t samples = 0;              // trained since its start
  double communication_seconds = 0;  // spent waiting for other ranks since its start
  uint64_t memory_bytes = 0;
};

// Progress of a job; see Progress in protos/training.proto.
struct JobProgress {
  int64_t step = 0;
  int64_t total_steps = 0;
  double epoch = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double samples_per_second = 0;
  double seconds_left = 0;  // below 0: unknown
  uint64_t memory_bytes = 0;
  uint64_t peak_memory_bytes = 0;
  std::map<std::string, double> metrics;
  double best_metric = 0;
  int64_t best_step = 0;
  std::map<std::string, double> best_metrics;  // of that step
  int64_t checkpoint_step = 0;
  uint64_t samples = 0;
  uint64_t planned_steps = 0;  // since the job was started or resumed; all other steps were interpreted
  int64_t next_batch = 0;
  std::vector<RankProgress> ranks;  // of a distributed job while it runs
  int64_t restarts = 0;             // of all ranks, after a rank was lost
  double loss_scale = 0;            // of the next step; 0: none
  int64_t skipped_steps = 0;        // steps whose gradients were not finite, with a loss scale
};

// A point of a job's curves.
struct CurvePoint {
  int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double samples_per_second = 0;
  std::map<std::string, double> metrics;
};

struct JobStatus {
  std::string id;
  JobSpec spec;
  JobState state = JobState::kQueued;
  std::string message;
  JobProgress progress;
  int64_t created_at_ms = 0;
  int64_t updated_at_ms = 0;
  int64_t base_version = 0;
  int64_t published_version = 0;
};

}  // namespace tensord::server
