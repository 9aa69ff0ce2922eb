// Calls on existing jobs.
#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/tensor/memory/accounts.h"
#include "server/training/training_service.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// How long deleting a job waits for it to stop.
constexpr auto kRemoveWait = std::chrono::seconds(1);

[[noreturn]] void fail_state(const TrainingJob& job, const char* what) {
  fail(ErrorCode::kFailedPrecondition, "training job '", job.id(), "' is ", to_string(job.state()), " and cannot be ",
       what);
}

}  // namespace

// Removes the job from the queue. Returns false if it was not queued.
bool TrainingService::take_from_queue(const std::shared_ptr<TrainingJob>& job) {
  const MutexLock lock(mutex_);
  const auto found = std::find(queue_.begin(), queue_.end(), job);
  if (found == queue_.end()) return false;
  queue_.erase(found);
  return true;
}

JobStatus TrainingService::pause(const std::string& id) {
  const std::shared_ptr<TrainingJob> job = find(id);
  if (job->state() == JobState::kPaused) return job->status();
  if (is_at_rest(job->state())) fail_state(*job, "paused");
  if (take_from_queue(job)) {
    finish(*job, JobState::kPaused, "");
  } else {
    job->set_request(JobRequest::kPause);
  }
  return job->status();
}

// Replaces the job by a copy with another number of ranks, which continues from its checkpoint.
std::shared_ptr<TrainingJob> TrainingService::with_world_size(const TrainingJob& job, int64_t world_size) {
  check(job.spec().distribution.is_wanted(), "world_size: job '", job.id(), "' has no distribution");
  JobStatus status = job.status();
  // A node keeps its number of ranks if it has several.
  DistributionSpec& distribution = status.spec.distribution;
  const bool had_several = distribution.has_several_hosts();
  distribution.world_size = world_size;
  if (!had_several) distribution.processes_per_host = world_size;
  distribution.processes_per_host = std::min(distribution.processes_per_host, world_size);
  if (!distribution.has_several_hosts()) distribution.hosts.clear();
  if (!distribution.has_several_hosts()) distribution.join_timeout_seconds = 0;
  // Fewer ranks only if the job allowed that before.
  const bool takes_fewer =
      distribution.has_several_hosts() && distribution.min_world_size < job.spec().distribution.world_size;
  distribution.min_world_size = takes_fewer ? std::min(distribution.min_world_size, world_size) : 0;
  check_job_spec(status.spec);
  check_ranks(status.spec);
  const auto changed = std::make_shared<TrainingJob>(std::move(status));
  changed->set_points(job.points_after(0));
  const MutexLock lock(mutex_);
  jobs_[job.id()] = changed;
  return changed;
}

JobStatus TrainingService::resume(const std::string& id, int64_t world_size) {
  const MutexLock create_lock(create_mutex_);
  std::shared_ptr<TrainingJob> job = find(id);
  if (!is_at_rest(job->state()) || job->state() == JobState::kCompleted) fail_state(*job, "resumed");
  if (world_size != 0 && world_size != job->spec().distribution.world_size) job = with_world_size(*job, world_size);
  job->update([](JobStatus& status) {
    status.state = JobState::kQueued;
    status.message.clear();
  });
  save(*job);
  enqueue(job);
  return job->status();
}

JobStatus TrainingService::cancel(const std::string& id) {
  const std::shared_ptr<TrainingJob> job = find(id);
  if (job->state() == JobState::kCancelled) return job->status();
  if (job->state() == JobState::kPaused || take_from_queue(job)) {
    finish(*job, JobState::kCancelled, "");
  } else if (is_at_rest(job->state())) {
    fail_state(*job, "cancelled");
  } else {
    job->set_request(JobRequest::kCancel);
  }
  return job->status();
}

JobStatus TrainingService::finish_training(const std::string& id) {
  const MutexLock create_lock(create_mutex_);
  const std::shared_ptr<TrainingJob> job = find(id);
  if (job->state() == JobState::kCompleted) return job->status();
  if (job->state() != JobState::kRunning && job->status().progress.checkpoint_step == 0) {
    fail(ErrorCode::kFailedPrecondition, "training job '", job->id(), "' is ", to_string(job->state()),
         " and has no checkpoint to finish with");
  }
  if (is_at_rest(job->state())) {
    job->update([](JobStatus& status) {
      status.state = JobState::kQueued;
      status.message.clear();
    });
    save(*job);
    enqueue(job);
  }
  job->set_request(JobRequest::kFinish);
  return job->status();
}

void TrainingService::remove(const std::string& name) {
  MutexLock create_lock(create_mutex_);  // a job resumed in the meantime would have no folder
  const std::shared_ptr<TrainingJob> job = find(name);
  const std::string id = job->id();
  if (take_from_queue(job)) finish(*job, JobState::kCancelled, "");
  bool is_running = false;
  {
    const MutexLock lock(mutex_);
    job->set_removed();
    jobs_.erase(id);
    std::erase(order_, id);
    is_running = running_.contains(job);
  }
  log(LogLevel::kInfo, "training job deleted", {{"job", id}});
  if (!is_running) {
    store_.remove(id);
    return;
  }
  job->set_request(JobRequest::kCancel);
  if (const auto stream = job->stream()) stream->close(ErrorCode::kCancelled, "the job was deleted");
  {
    const MutexLock save_lock(save_mutex_);
    store_.forget(id);  // if the daemon stops before the job does, the job must not come back
  }
  create_lock.unlock();
  MutexLock lock(mutex_);
  changed_.wait_for(lock, kRemoveWait,
                    [&]() TENSORD_REQUIRES(mutex_) { return !running_.contains(job) || is_stopped_; });
}

std::vector<TrainingSample> TrainingService::samples() const {
  std::vector<TrainingSample> out;
  for (const std::shared_ptr<TrainingJob>& job : jobs()) {
    const JobStatus status = job->status();
    const JobProgress& progress = status.progress;
    TrainingSample& sample = out.emplace_back();
    sample.job = status.id;
    sample.model = status.spec.model.name.empty() ? status.spec.publish.model : status.spec.model.name;
    sample.state = to_string(status.state);
    sample.step = static_cast<double>(progress.step);
    sample.total_steps = static_cast<double>(progress.total_steps);
    sample.epoch = progress.epoch;
    sample.loss = progress.loss;
    sample.learning_rate = progress.learning_rate;
    sample.gradient_norm = progress.gradient_norm;
    const bool is_running = status.state == JobState::kRunning;
    sample.samples_per_second = is_running ? progress.samples_per_second : 0;
    sample.seconds_left = progress.seconds_left;
    sample.samples = static_cast<double>(progress.samples);
    sample.memory_bytes = is_running ? static_cast<double>(bytes_of_owner(memory_owner("job/" + status.id))) : 0;
    sample.checkpoint_step = static_cast<double>(progress.checkpoint_step);
    sample.metrics = progress.metrics;
    sample.planned_steps = static_cast<double>(progress.planned_steps);
    sample.restarts = static_cast<double>(progress.restarts);
    if (!progress.ranks.empty() && is_running) sample.memory_bytes = 0;
    for (const RankProgress& rank : progress.ranks) {
      if (is_running) sample.memory_bytes += static_cast<double>(rank.memory_bytes);
      sample.ranks.push_back({rank.rank, rank.host, static_cast<double>(rank.step), rank.communication_seconds});
    }
  }
  return out;
}

}  // namespace tensord::server
