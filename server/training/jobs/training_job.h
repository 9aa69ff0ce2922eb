#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"

#include "server/training/data/batch_stream.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// A client's request for a queued or running job; checked between steps.
// kFinish ends the training as if it were complete.
enum class JobRequest { kNone, kPause, kCancel, kStop, kFinish };
// Whether it ends work that comes before or between steps: loading, waiting.
inline bool interrupts(JobRequest request) { return request != JobRequest::kNone && request != JobRequest::kFinish; }

// A job: its state, curves and pending request. Updated by the trainer, read by clients. Thread-safe.
class TrainingJob {
 public:
  explicit TrainingJob(JobStatus status);

  const std::string& id() const { return id_; }
  const JobSpec& spec() const { return spec_; }
  JobStatus status() const;
  JobState state() const;
  // Changes whenever the status or the curves do.
  uint64_t revision() const { return revision_.load(std::memory_order_acquire); }
  void update(const std::function<void(JobStatus&)>& change);

  // Points of steps after `step`, oldest first.
  std::vector<CurvePoint> points_after(int64_t step) const;
  void add_point(CurvePoint point);
  void set_points(std::vector<CurvePoint> points);

  JobRequest request() const { return request_.load(std::memory_order_acquire); }
  void set_request(JobRequest request) { request_.store(request, std::memory_order_release); }

  // The job was deleted while it ran: nothing of it is written any more.
  bool is_removed() const { return is_removed_.load(std::memory_order_acquire); }
  void set_removed() { is_removed_.store(true, std::memory_order_release); }

  // For streamed data: the queue of batches, created at every start of the job; otherwise null.
  std::shared_ptr<BatchStream> stream() const;
  void set_stream(std::shared_ptr<BatchStream> stream);
  // Creates it; its first batch has this number.
  void renew_stream(int64_t first);

 private:
  const std::string id_;
  const JobSpec spec_;
  std::atomic<uint64_t> revision_{1};
  std::atomic<JobRequest> request_{JobRequest::kNone};
  std::atomic<bool> is_removed_{false};
  mutable Mutex mutex_;
  JobStatus status_ TENSORD_GUARDED_BY(mutex_);
  std::vector<CurvePoint> points_ TENSORD_GUARDED_BY(mutex_);
  std::shared_ptr<BatchStream> stream_ TENSORD_GUARDED_BY(mutex_);
};

// Unix time in milliseconds.
int64_t now_ms();

}  // namespace tensord::server
