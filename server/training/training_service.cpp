#include "server/training/training_service.h"

#include <algorithm>
#include <cmath>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/nearest.h"
#include "core/base/thread.h"
#include "core/base/thread_priority.h"
#include "core/base/utf8.h"
#include "core/tensor/device_runtime.h"
#include "server/training/data/batch_source.h"
#include "server/training/data/data_file.h"
#include "server/training/jobs/job_origin.h"
#include "server/training/ranks/worker_group.h"
#include "server/training/trainer.h"
#include "server/training/trainer_state.h"
#include "server/training/weights_update.h"

namespace tensord::server {
namespace {

// Returns "" if the threshold is met or there is none.
std::string why_not_published(const PublishSpec& publish, const JobProgress& progress) {
  if (publish.when == "best" && progress.best_step == 0) {
    return concat("not published: ", publish.metric, " was a number in no evaluation");
  }
  if (!publish.bar) return {};
  const auto found = progress.metrics.find(publish.metric);
  const double value = publish.when == "best"            ? progress.best_metric
                       : found != progress.metrics.end() ? found->second
                                                         : NAN;
  const bool wants_more = is_more_better(publish.metric);
  const bool is_met = wants_more ? value >= *publish.bar : value <= *publish.bar;
  if (is_met) return {};
  return concat("not published: ", publish.metric, " is ", value,
                publish.when == "best" ? concat(" at best, after step ", progress.best_step) : std::string(), ", ",
                wants_more ? "below" : "above", " the bar of ", *publish.bar);
}

std::string joined(const std::string& text, const std::string& more) {
  return more.empty() ? text : concat(text, "; ", more);
}

// Message for a job whose client has gone.
std::string starved(const TrainingJob& job) {
  return concat("no client has streamed data for ", job.spec().data.stream_timeout_seconds,
                " seconds; the next batch is ", job.status().progress.next_batch);
}

std::string describe_checkpoint(int64_t step) {
  return step > 0 ? concat("; the last checkpoint is of step ", step) : std::string("; there is no checkpoint");
}

}  // namespace

TrainingService::TrainingService(Options options, Repository& repository, Metrics& metrics)
    : options_(std::move(options)),
      repository_(repository),
      metrics_(metrics),
      store_(options_.folder),
      publisher_(repository),
      hosts_(options_.version) {
  read_jobs();
  metrics_.watch_training([this] { return samples(); });
}

TrainingService::~TrainingService() {
  stop();
  metrics_.watch_training({});
}

void TrainingService::read_jobs() {
  for (JobStatus& status : store_.load()) {
    const std::string id = status.id;
    const bool goes_on = !is_at_rest(status.state);
    status.state = goes_on ? JobState::kQueued : status.state;
    const auto job = std::make_shared<TrainingJob>(std::move(status));
    try {
      read_points(*job);
      if (goes_on) enqueue(job);
    } catch (const std::exception& error) {
      store_.set_aside(id, error.what());
      continue;
    }
    add_job(job);
    if (goes_on) log(LogLevel::kInfo, "training job continues", {{"job", id}});
  }
}

void TrainingService::start() {
  const MutexLock lock(mutex_);
  for (int i = 0; i < options_.concurrent_jobs; ++i) threads_.emplace_back("training", [this] { work(); });
}

// Reads the curves of a job from before a restart; they are only displayed.
void TrainingService::read_points(TrainingJob& job) const {
  const Checkpoints checkpoints(store_.job_folder(job.id()), job.spec().checkpoints.keep);
  const auto newest = checkpoints.newest_unchecked();
  if (!newest) return;
  try {
    job.set_points(read_curve(newest->curve_file()).points);
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, "curves of a training job cannot be read", {{"job", job.id()}, {"reason", error.what()}});
  }
}

void TrainingService::stop() {
  std::vector<Thread> threads;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = is_stopping_ = true;
    threads.swap(threads_);
    for (const auto& [id, job] : jobs_) {
      if (!is_at_rest(job->state())) job->set_request(JobRequest::kStop);
      if (const auto stream = job->stream()) stream->close(ErrorCode::kUnavailable, "the server is shutting down");
    }
  }
  changed_.notify_all();
  for (Thread& thread : threads) thread.join();
  // Ranks on other nodes have stopped with their jobs.
  hosts_.close();
}

void TrainingService::add_job(std::shared_ptr<TrainingJob> job) {
  const MutexLock lock(mutex_);
  order_.push_back(job->id());
  jobs_[job->id()] = std::move(job);
}

void TrainingService::enqueue(const std::shared_ptr<TrainingJob>& job) {
  job->set_request(JobRequest::kNone);
  if (job->spec().data.streamed) {
    // The batches after the last checkpoint are needed again.
    job->renew_stream(next_batch_after(Checkpoints(store_.job_folder(job->id()), job->spec().checkpoints.keep)));
  }
  {
    const MutexLock lock(mutex_);
    queue_.push_back(job);
  }
  changed_.notify_all();
}

std::shared_ptr<TrainingJob> TrainingService::find(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) return found->second;
  std::shared_ptr<TrainingJob> of_name;
  for (const auto& [other, job] : jobs_) {
    if (id.empty() || job->spec().name != id) continue;
    check(!of_name, "'", id, "' is the name of several training jobs, of ", of_name->id(), " and ", other,
          " for example: give the id");
    of_name = job;
  }
  if (!of_name) {
    std::vector<std::string> names(order_.rbegin(), order_.rend());
    std::set<std::string> given;
    for (const auto& [other, job] : jobs_) given.insert(job->spec().name);
    names.insert(names.end(), given.upper_bound(""), given.end());
    fail(ErrorCode::kNotFound, "there is no training job '", id, "'", right_names(id, names));
  }
  return of_name;
}

std::vector<std::shared_ptr<TrainingJob>> TrainingService::jobs() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<TrainingJob>> out;
  for (const std::string& id : order_) out.push_back(jobs_.at(id));
  return out;
}

Repository::RolledBack TrainingService::roll_back(const std::string& model) { return repository_.roll_back(model); }

void TrainingService::save(const TrainingJob& job) {
  const MutexLock lock(save_mutex_);
  write(job, job.status());
}

void TrainingService::write(const TrainingJob& job, const JobStatus& status) {
  if (job.is_removed()) return;
  try {
    store_.save(status);
  } catch (const std::exception& error) {
    // The job is not affected: after a restart it continues from its checkpoint.
    log(LogLevel::kError, "state of a training job not saved", {{"job", job.id()}, {"reason", error.what()}});
  }
}

void TrainingService::finish(TrainingJob& job, JobState state, const std::string& message) {
  if (const auto stream = job.stream()) {
    stream->close(ErrorCode::kFailedPrecondition, concat("the job is ", to_string(state), " and takes no data",
                                                         message.empty() ? std::string() : ": " + message));
  }
  const auto end = [&](JobStatus& status) {
    status.state = state;
    status.message = message;
    status.progress.seconds_left = 0;
  };
  {
    // Written first, so that a daemon that is killed does not go on with a job of which clients have seen the end.
    const MutexLock lock(save_mutex_);
    JobStatus ended = job.status();
    end(ended);
    ended.updated_at_ms = now_ms();
    write(job, ended);
    job.update(end);
  }
  log(state == JobState::kFailed ? LogLevel::kError : LogLevel::kInfo, "training job stopped",
      {{"job", job.id()}, {"state", to_string(state)}, {"message", message}});
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

void TrainingService::work() {
  take_low_priority(options_.nice);
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !queue_.empty(); });
    if (is_stopped_) return;
    const std::shared_ptr<TrainingJob> job = std::move(queue_.front());
    queue_.pop_front();
    running_.insert(job);
    lock.unlock();
    run_logged("training", [&] { run(job); });
    end_run(job);
    lock.lock();
  }
}

void TrainingService::end_run(const std::shared_ptr<TrainingJob>& job) {
  MutexLock lock(mutex_);
  if (job->is_removed()) {
    lock.unlock();
    run_logged("training", [&] { store_.remove(job->id()); });
    lock.lock();
  }
  running_.erase(job);
  changed_.notify_all();
}

void TrainingService::run(const std::shared_ptr<TrainingJob>& job) {
  switch (job->request()) {
    case JobRequest::kPause: return finish(*job, JobState::kPaused, "");
    case JobRequest::kCancel: return finish(*job, JobState::kCancelled, "");
    case JobRequest::kStop: return;
    case JobRequest::kFinish:
    case JobRequest::kNone: break;
  }
  job->update([](JobStatus& status) {
    status.state = JobState::kRunning;
    status.message.clear();
  });
  save(*job);
  std::optional<Ended> ended;
  try {
    ended = train(*job);
  } catch (const std::exception& error) {
    const int64_t checkpoint = job->status().progress.checkpoint_step;
    const std::string text = without_folder(error.what(), data_folder_of(*job));
    ended = {JobState::kFailed, to_valid_utf8(text) + describe_checkpoint(checkpoint)};
  }
  if (ended) finish(*job, ended->state, ended->message);
}

// Returns null if the job was told to stop meanwhile: model code that runs during loading may never end.
std::unique_ptr<Trainer> TrainingService::make_trainer(TrainingJob& job) {
  const CancellationScope scope([&job] { return interrupts(job.request()); });
  try {
    return std::make_unique<Trainer>(job, Trainer::Options{.folder = store_.job_folder(job.id()),
                                                           .base_archive = store_.base_archive(job.id()).string(),
                                                           .data_folder = data_folder_of(job),
                                                           .threads = threads_of(job.spec()),
                                                           .plans = options_.plans,
                                                           .memory_bytes = job.spec().resources.memory_bytes,
                                                           .saved_status = [this, &job] { save(job); }});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;  // which only a request causes
    return nullptr;
  }
}

std::unique_ptr<WorkerGroup> TrainingService::make_worker_group(TrainingJob& job) {
  return std::make_unique<WorkerGroup>(job, WorkerGroup::Options{.program = options_.rank_program,
                                                                 .folder = store_.job_folder(job.id()),
                                                                 .base_archive = store_.base_archive(job.id()).string(),
                                                                 .data_folder = data_folder_of(job),
                                                                 .threads = threads_of(job.spec()),
                                                                 .memory_bytes = job.spec().resources.memory_bytes,
                                                                 .nice = options_.nice,
                                                                 .host = options_.host,
                                                                 .interface = options_.interface,
                                                                 .hosts = &hosts_,
                                                                 .fingerprints = &fingerprints_,
                                                                 .saved_status = [this, &job] { save(job); }});
}

// Returns nullopt if the job stops because the daemon stops; it continues at the next start.
std::optional<TrainingService::Ended> TrainingService::train(TrainingJob& job) {
  const JobInputs inputs(store_.job_folder(job.id()), data_folder_of(job));
  return job.spec().distribution.is_wanted() ? train_by_ranks(job, inputs) : train_here(job, inputs);
}

std::optional<TrainingService::Ended> TrainingService::train_here(TrainingJob& job, const JobInputs& inputs) {
  const JobSpec& spec = job.spec();
  // A queue of work of its own: what its kernels find wrong is the job's error only.
  const Device device = device_of_job(spec);
  const std::unique_ptr<DeviceStream> stream =
      device.is_host() ? nullptr : device_runtime(device).make_stream(device.index);
  const ContextPart<&ExecutionContext::stream> stream_scope(stream.get());
  const std::unique_ptr<Trainer> trainer = make_trainer(job);
  if (!trainer) {
    if (job.request() == JobRequest::kStop) return std::nullopt;
    return Ended{job.request() == JobRequest::kPause ? JobState::kPaused : JobState::kCancelled, ""};
  }
  inputs.note(spec, store_.base_archive(job.id()), job.status().progress.step,
              [&] { return interrupts(job.request()); });
  switch (trainer->run()) {
    case Trainer::Outcome::kDone: break;
    case Trainer::Outcome::kPaused: return Ended{JobState::kPaused, ""};
    case Trainer::Outcome::kCancelled: return Ended{JobState::kCancelled, ""};
    case Trainer::Outcome::kStopped: return std::nullopt;
    case Trainer::Outcome::kStarved: return Ended{JobState::kPaused, starved(job)};
  }
  return publish(job, inputs, trainer->warning(), [&](const std::string& path) { trainer->write_result(path); });
}

std::optional<TrainingService::Ended> TrainingService::train_by_ranks(TrainingJob& job, const JobInputs& inputs) {
  const std::unique_ptr<WorkerGroup> group = make_worker_group(job);
  inputs.note(job.spec(), store_.base_archive(job.id()), job.status().progress.step,
              [&] { return interrupts(job.request()); });
  switch (group->run()) {
    case Trainer::Outcome::kPaused: return Ended{JobState::kPaused, ""};
    case Trainer::Outcome::kCancelled: return Ended{JobState::kCancelled, ""};
    case Trainer::Outcome::kStopped: return std::nullopt;
    case Trainer::Outcome::kStarved: return Ended{JobState::kPaused, starved(job)};
    case Trainer::Outcome::kDone: break;
  }
  return publish(job, inputs, group->warning(), [&](const std::string& path) {
    copy_as_base(store_.base_archive(job.id()).string(), group->result().string(), path);
  });
}

// Publishes the result of a finished job if configured, and returns the job's final state.
TrainingService::Ended TrainingService::publish(TrainingJob& job, const JobInputs& inputs, const std::string& warning,
                                                const std::function<void(const std::string& path)>& write) {
  Ended ended{JobState::kCompleted, warning};
  if (!job.spec().publish.is_wanted()) return ended;
  const JobStatus status = job.status();
  const std::string refused = why_not_published(job.spec().publish, status.progress);
  if (!refused.empty()) {
    ended.message = joined(refused, warning);
    return ended;
  }
  const Repository::Added added =
      publisher_.publish(status, format_file_name(store_.base_archive(job.id())), inputs.origin_of(status), write);
  job.update([&](JobStatus& changed) { changed.published_version = added.version; });
  if (!added.is_served) {
    ended.message =
        joined(concat("version ", added.version, " is not served: the model's version policy wants others"), warning);
  }
  return ended;
}

}  // namespace tensord::server
