#include "server/training/ranks/rank_process.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/base/thread_priority.h"
#include "core/base/utf8.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/distributed/local/local_backend.h"
#include "core/distributed/store/tcp_store.h"
#include "server/training/data/data_file.h"
#include "server/training/jobs/job_json.h"
#include "server/training/ranks/rank_task.h"
#include "server/training/ranks/stream_broadcaster.h"
#include "server/training/trainer.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr int kEvents = 3;
constexpr auto kRankLookInterval = 50ms;
constexpr auto kHeartbeat = 500ms;
// Ranks wait for rank 0 while it evaluates or saves. The worker group detects lost or stuck ranks.
constexpr auto kGroupTimeout = std::chrono::hours(24);
constexpr auto kStartTimeout = std::chrono::minutes(10);

void say(const Json& json) {
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = TEMP_FAILURE_RETRY(write(kEvents, rest.data(), rest.size()));
    if (written < 0) _exit(1);  // the worker group has gone
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

// Reports the job's changes and a heartbeat to the worker group.
class Reporter {
 public:
  Reporter(const TrainingJob& job, bool sends_points)
      : job_(job), sends_points_(sends_points), thread_("rank-report", [this] { work(); }) {}
  ~Reporter() {
    {
      const MutexLock lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // Until then this rank waits for the others.
  void has_group() { has_group_ = true; }
  // Points that the job has at this time are known to the worker group.
  void start() { is_started_ = true; }
  void flush() {
    const MutexLock lock(mutex_);
    tell();
  }

 private:
  void work() {
    MutexLock lock(mutex_);
    auto said = std::chrono::steady_clock::now();
    while (!changed_.wait_for(lock, kRankLookInterval, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_; })) {
      const auto now = std::chrono::steady_clock::now();
      if (is_started_ && job_.revision() != told_revision_) {
        tell();
      } else if (now - said >= kHeartbeat) {
        say(heartbeat());
      } else {
        continue;
      }
      said = now;
    }
  }
  Json heartbeat() const {
    const distributed::Waits waits = distributed::waits_of_process();
    return waits.is_waiting || !has_group_ ? Json{{"waits", waits.ended}} : Json::object();
  }
  void tell() TENSORD_REQUIRES(mutex_) {
    told_revision_ = job_.revision();
    JobStatus status;
    const JobStatus now = job_.status();
    status.progress = now.progress;
    Json json = {{"status", to_json(status)}, {"message", to_valid_utf8(now.message)}};
    if (sends_points_) {
      // Sends the last point again, because its step may have been evaluated since.
      const auto points = job_.points_after(is_reset_ ? 0 : told_step_ - 1);
      Json list = Json::array();
      for (const CurvePoint& point : points) list.push_back(to_json(point));
      json["points"] = std::move(list);
      if (is_reset_) json["is_reset"] = true;
      if (!points.empty()) told_step_ = points.back().step;
      is_reset_ = false;
    }
    say(json);
  }

  const TrainingJob& job_;
  const bool sends_points_;
  std::atomic<bool> has_group_{false}, is_started_{false};
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false, is_reset_ TENSORD_GUARDED_BY(mutex_) = true;
  uint64_t told_revision_ TENSORD_GUARDED_BY(mutex_) = 0;
  int64_t told_step_ TENSORD_GUARDED_BY(mutex_) = 0;
  Thread thread_;  // declared last: it uses the other members
};

// Reads orders of the worker group until it has gone.
void read_orders(TrainingJob& job) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "pause") job.set_request(JobRequest::kPause);
    if (line == "stop") job.set_request(JobRequest::kStop);
    if (line == "finish") job.set_request(JobRequest::kFinish);
  }
  _exit(1);
}

// Prefetches one batch.
Thread start_reading_batches(const RankTask& task, TrainingJob& job) {
  const auto stream = std::make_shared<BatchStream>(/*max_bytes=*/1, task.first_batch);
  job.set_stream(stream);
  return Thread("rank-batches", [stream] { read_streamed(kStreamedBatches, *stream); });
}

RankTask read_task() {
  std::string line;
  check(static_cast<bool>(std::getline(std::cin, line)), kRankCommand, ": no task on the standard input");
  return rank_task_from_text(line);
}

Trainer::Options trainer_options(const RankTask& task, distributed::ProcessGroup& group) {
  return {.folder = task.folder,
          .base_archive = task.base_archive,
          .data_folder = task.data_folder,
          .threads = task.threads,
          .memory_bytes = task.memory_bytes,
          .saved_status = {},
          .group = &group};
}

const char* text_of(Trainer::Outcome outcome) {
  switch (outcome) {
    case Trainer::Outcome::kDone: return "done";
    case Trainer::Outcome::kPaused: return "paused";
    case Trainer::Outcome::kStarved: return "starved";
    default: return "stopped";
  }
}

Json train(const RankTask& task, TrainingJob& job, Reporter& reporter, distributed::ProcessGroup& group) {
  Trainer trainer(job, trainer_options(task, group));
  reporter.start();
  const Trainer::Outcome outcome = trainer.run();
  if (outcome == Trainer::Outcome::kDone && task.rank == 0 && job.spec().publish.is_wanted()) {
    trainer.write_result(task.result);
  }
  reporter.flush();
  group.close();
  return {{"ended", text_of(outcome)}, {"warning", trainer.warning()}};
}

// Returns the rank's last message. The first error on any rank ends all ranks.
Json run(const RankTask& task, TrainingJob& job, Reporter& reporter) {
  std::unique_ptr<distributed::ProcessGroup> group;
  const auto failed = [&](ErrorCode code, const std::string& text) {
    const std::string message = without_folder(text, task.data_folder);
    // Before the group exists, errors are those of missing ranks, or of a stranger in place of one.
    const bool is_other = group ? group->failure() && message.find(group->failure()->what()) != std::string::npos
                                : code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
                                      code == ErrorCode::kFailedPrecondition;
    if (group && !is_other) group->abort(concat("rank ", task.rank, ": ", message));
    return Json{{"failed", to_valid_utf8(message)}, {"code", static_cast<int>(code)}, {"is_other", is_other}};
  };
  try {
    const auto world = static_cast<int>(job.spec().distribution.world_size);
    const auto store = std::make_shared<distributed::TcpStore>(distributed::TcpStoreOptions{
        .host = task.store_host, .port = task.store_port, .timeout = kStartTimeout, .token = task.secret});
    group = std::make_unique<distributed::ProcessGroup>(
        store, "job", task.rank, world,
        world == 1 ? distributed::local_backends() : distributed::gloo_backends({.address = task.address}),
        distributed::GroupOptions{.timeout = kGroupTimeout, .secret = task.secret});
    reporter.has_group();
    return train(task, job, reporter, *group);
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::exception& error) {
    return failed(ErrorCode::kInternal, error.what());
  }
}

}  // namespace

int run_rank_process() {
  // The daemon decides when this process ends.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  const RankTask task = read_task();
  take_low_priority(task.nice);
  TrainingJob job(task.job);
  const Thread requests("rank-requests", [&job] { read_orders(job); });
  Thread batches;
  if (task.rank == 0 && job.spec().data.streamed) batches = start_reading_batches(task, job);
  std::optional<Reporter> reporter(std::in_place, job, task.rank == 0);
  const Json last = run(task, job, *reporter);
  reporter.reset();
  say(last);
  _exit(last.contains("failed") ? 1 : 0);  // the thread that reads orders would block exit()
}

}  // namespace tensord::server
