#include "server/training/jobs/training_job.h"

#include <algorithm>
#include <chrono>

#include "core/base/mutex.h"

namespace tensord::server {
namespace {

// Above this, every other point is left out.
constexpr size_t kMaxPoints = 4096;

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
    if (points_.size() > kMaxPoints) {
      size_t kept = 0;
      for (size_t i = 0; i < points_.size(); ++i) {
        if (i % 2 == 1 || !points_[i].metrics.empty()) points_[kept++] = std::move(points_[i]);
      }
      points_.resize(std::min(kept, kMaxPoints));
    }
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
  // Ranks that are started again need what came after the last checkpoint once more.
  set_stream(std::make_shared<BatchStream>(spec_.data.max_buffered_bytes, first, spec_.distribution.is_wanted()));
}

}  // namespace tensord::server
