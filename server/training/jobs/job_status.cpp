#include "server/training/jobs/job_status.h"

#include <iterator>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// In the order of the enum.
constexpr const char* kStateNames[] = {"QUEUED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"};

}  // namespace

const char* to_string(JobState state) { return kStateNames[static_cast<size_t>(state)]; }

JobState parse_job_state(const std::string& text) {
  for (size_t i = 0; i < std::size(kStateNames); ++i) {
    if (text == kStateNames[i]) return static_cast<JobState>(i);
  }
  fail(ErrorCode::kInvalidArgument, "state: '", text, "' is not a job's state");
}

}  // namespace tensord::server
