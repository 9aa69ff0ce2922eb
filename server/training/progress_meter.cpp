#include "server/training/progress_meter.h"

#include <algorithm>
#include <cmath>

#include "core/tensor/memory/accounts.h"

namespace tensord::server {
namespace {

constexpr int64_t kPointsPerJob = 2048;
constexpr int64_t kFlushIntervalNs = 100'000'000;

// Also between flushes.
uint64_t peak_bytes_of(OwnerId owner) {
  const std::string name = memory_owner_name(owner);
  const std::vector<OwnerBytes> owners = bytes_of_owners();
  const auto found = std::ranges::find(owners, name, &OwnerBytes::name);
  return found == owners.end() ? 0 : found->peak_bytes;
}

}  // namespace

ProgressMeter::ProgressMeter(TrainingJob& job, OwnerId owner, int64_t total_steps, const Clock& clock)
    : job_(job),
      owner_(owner),
      total_steps_(total_steps),
      point_interval_(total_steps / kPointsPerJob + 1),
      clock_(clock),
      start_ns_(clock.now_ns()),
      progress_(job.status().progress) {
  first_step_ = progress_.step;
  progress_.total_steps = total_steps;
  point_.since_ns = rate_.since_ns = flushed_ns_ = start_ns_;
  flush();
}

double ProgressMeter::samples_per_second(int64_t now_ns) const {
  const double seconds = static_cast<double>(now_ns - rate_.since_ns) * 1e-9;
  return seconds > 0 ? static_cast<double>(rate_.rows) / seconds : 0;
}

void ProgressMeter::add_step(const Step& step) {
  const int64_t now_ns = clock_.now_ns();
  progress_.step = step.step;
  progress_.epoch = step.epoch;
  progress_.learning_rate = step.learning_rate;
  progress_.samples += static_cast<uint64_t>(step.rows);
  progress_.next_batch = step.next_batch;
  progress_.planned_steps += step.is_planned;
  progress_.skipped_steps += step.is_skipped;
  progress_.loss_scale = step.loss_scale;
  if (step.gradient_norm >= 0) progress_.gradient_norm = step.gradient_norm;
  for (Sums* sums : {&point_, &rate_}) {
    if (std::isfinite(step.loss)) {  // otherwise it was skipped
      sums->loss += step.loss;
      ++sums->losses;
    }
    sums->rows += step.rows;
    ++sums->steps;
  }
  if (wants_point(step.step) && point_.losses > 0) {
    const double seconds = static_cast<double>(now_ns - point_.since_ns) * 1e-9;
    CurvePoint point{.step = step.step,
                     .epoch = step.epoch,
                     .loss = point_.loss / static_cast<double>(point_.losses),
                     .learning_rate = step.learning_rate,
                     .gradient_norm = std::max(step.gradient_norm, 0.0),
                     .samples_per_second = seconds > 0 ? static_cast<double>(point_.rows) / seconds : 0,
                     .metrics = {}};
    progress_.loss = point.loss;
    job_.add_point(std::move(point));
    point_ = {.since_ns = now_ns};
  }
  if (now_ns - flushed_ns_ >= kFlushIntervalNs) flush();
}

void ProgressMeter::add_evaluation(int64_t step, double epoch, const std::map<std::string, double>& metrics) {
  progress_.metrics = metrics;
  CurvePoint point{.step = step,
                   .epoch = epoch,
                   .loss = progress_.loss,
                   .learning_rate = progress_.learning_rate,
                   .gradient_norm = progress_.gradient_norm,
                   .samples_per_second = progress_.samples_per_second,
                   .metrics = metrics};
  job_.add_point(std::move(point));
  flush();
}

void ProgressMeter::flush() {
  const int64_t now_ns = clock_.now_ns();
  if (rate_.steps > 0) progress_.samples_per_second = samples_per_second(now_ns);
  const int64_t done = progress_.step - first_step_;
  const double seconds = static_cast<double>(now_ns - start_ns_) * 1e-9;
  progress_.seconds_left = total_steps_ == 0 || done == 0 ? -1
                                                          : seconds / static_cast<double>(done) *
                                                                static_cast<double>(total_steps_ - progress_.step);
  progress_.memory_bytes = bytes_of_owner(owner_);
  progress_.peak_memory_bytes = std::max(progress_.peak_memory_bytes, peak_bytes_of(owner_));
  job_.update([this](JobStatus& status) {
    // Keeps the fields that others write.
    const JobProgress before = std::exchange(status.progress, progress_);
    status.progress.checkpoint_step = before.checkpoint_step;
    status.progress.best_metric = before.best_metric;
    status.progress.best_step = before.best_step;
    status.progress.best_metrics = before.best_metrics;
    status.progress.ranks = before.ranks;
    status.progress.restarts = before.restarts;
  });
  rate_ = {.since_ns = now_ns};
  flushed_ns_ = now_ns;
}

}  // namespace tensord::server
