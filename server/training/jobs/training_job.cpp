#include "server/training/jobs/training_job.h"

#include <algorithm>
#include <chrono>

#include "core/base/mutex.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxPoints = 4096;

// If there are too many points, drops every other one, and points with metrics only if that is not enough. The newest
// point stays.
void bound(std::vector<CurvePoint>& points) {
  for (const bool keeps_measured : {true, false}) {
    if (points.size() <= kMaxPoints) return;
    size_t to_end = points.size();
    std::erase_if(points, [&](const CurvePoint& point) {
      return --to_end % 2 == 1 && !(keeps_measured && !point.metrics.empty());
    });
  }
}

}  // namespace

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

TrainingJob::TrainingJob(JobStatus status) : id_(status.id), spec_(status.spec), status_(std::move(status)) {}

JobStatus TrainingJob::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

JobState TrainingJob::state() const {
  const MutexLock lock(mutex_);
  return status_.state;
}

void TrainingJob::update(const std::function<void(JobStatus&)>& change) {
  {
    const MutexLock lock(mutex_);
    change(status_);
    status_.updated_at_ms = now_ms();
  }
  revision_.fetch_add(1, std::memory_order_acq_rel);
}

std::vector<CurvePoint> TrainingJob::points_after(int64_t step) const {
  const MutexLock lock(mutex_);
  const auto first = std::upper_bound(points_.begin(), points_.end(), step,
                                      [](int64_t wanted, const CurvePoint& point) { return wanted < point.step; });
  return {first, points_.end()};
}

void TrainingJob::add_point(CurvePoint point) {
  {
    const MutexLock lock(mutex_);
    if (!points_.empty() && points_.back().step == point.step) {
      points_.back().metrics.merge(point.metrics);
    } else {
      points_.push_back(std::move(point));
    }
    bound(points_);
  }
  revision_.fetch_add(1, std::memory_order_acq_rel);
}

void TrainingJob::set_points(std::vector<CurvePoint> points) {
  const MutexLock lock(mutex_);
  points_ = std::move(points);
}

std::shared_ptr<BatchStream> TrainingJob::stream() const {
  const MutexLock lock(mutex_);
  return stream_;
}

void TrainingJob::set_stream(std::shared_ptr<BatchStream> stream) {
  const MutexLock lock(mutex_);
  stream_ = std::move(stream);
}

void TrainingJob::renew_stream(int64_t first) {
  update([first](JobStatus& status) { status.progress.next_batch = first; });
  // Restarted ranks need the batches after the last checkpoint again.
  set_stream(std::make_shared<BatchStream>(spec_.data.max_buffered_bytes, first, spec_.distribution.is_wanted()));
}

}  // namespace tensord::server
