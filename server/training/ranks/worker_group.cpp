#include "server/training/ranks/worker_group.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/distributed/hmac.h"
#include "core/distributed/store/tcp_server.h"
#include "server/training/jobs/job_json.h"
#include "server/training/ranks/local_rank.h"
#include "server/training/trainer_state.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// Grace period: a secondary failure is reported only if the rank that failed first has not reported by then.
constexpr auto kCauseWait = 2s;

Trainer::Outcome outcome_of(JobRequest request) {
  return request == JobRequest::kPause    ? Trainer::Outcome::kPaused
         : request == JobRequest::kCancel ? Trainer::Outcome::kCancelled
                                          : Trainer::Outcome::kStopped;
}

}  // namespace

// The rendezvous store of one start, protected by its own secret.
class RankStore {
 public:
  explicit RankStore(const std::string& address)
      : secret(distributed::hex_of(distributed::random_bytes(32))),
        server({.host = address, .port = 0, .token = secret}) {}
  const std::string secret;
  distributed::TcpStoreServer server;
};

struct WorkerGroup::Rank {
  Rank(int number, std::unique_ptr<WorkerHandle> link) : number(number), link(std::move(link)) {}
  struct Failure {
    Error error;
    bool is_other;
  };

  const int number;
  const std::unique_ptr<WorkerHandle> link;
  Clock::time_point heard = Clock::now();
  // Since when the rank has been in its current wait for others.
  std::optional<Clock::time_point> waits_since;
  uint64_t waits = 0;
  RankProgress progress;
  std::string ended;               // "done"
  std::optional<std::string> how;  // how its process ended
  std::optional<Failure> failure;
  Clock::time_point failed_at;
};

WorkerGroup::WorkerGroup(TrainingJob& job, Options options)
    : job_(job),
      options_(std::move(options)),
      world_size_(static_cast<int>(job.spec().distribution.world_size)),
      host_size_(
          static_cast<int>(std::min(job.spec().distribution.world_size, job.spec().distribution.processes_per_host))),
      timeout_(job.spec().distribution.timeout_seconds) {}
WorkerGroup::~WorkerGroup() = default;

// The task common to all ranks on this node; other nodes insert their own paths.
RankTask WorkerGroup::task() const {
  RankTask task;
  task.job = job_.status();
  task.job.spec.distribution.world_size = world_size_;
  task.folder = options_.folder.string();
  task.base_archive = options_.base_archive;
  task.data_folder = options_.data_folder;
  task.result = result().string();
  task.threads = std::max(1, options_.threads / host_size_);
  task.memory_bytes = options_.memory_bytes / static_cast<uint64_t>(host_size_);
  task.nice = options_.nice;
  task.store_port = store_->server.port();
  task.secret = store_->secret;
  if (job_.stream()) task.first_batch = job_.status().progress.next_batch;
  return task;
}

void WorkerGroup::add_rank(std::unique_ptr<WorkerHandle> link) {
  Rank& rank = *ranks_.emplace_back(std::make_unique<Rank>(static_cast<int>(ranks_.size()), std::move(link)));
  rank.progress.rank = rank.number;
  rank.progress.host = rank.link->host();
  record_pid(rank);
}

void WorkerGroup::record_pid(Rank& rank) { rank.progress.pid = rank.link->pid(); }

bool WorkerGroup::gather_hosts() {
  const int64_t wanted = job_.spec().distribution.world_size;
  world_size_ = static_cast<int>(wanted);
  if (host_size_ == world_size_) return true;
  remote_ = std::make_unique<RemoteHosts>(job_, RemoteHosts::Options{.registry = options_.hosts,
                                                                     .fingerprints = options_.fingerprints,
                                                                     .resting = &backoff_,
                                                                     .folder = options_.folder,
                                                                     .base_archive = options_.base_archive,
                                                                     .data_folder = options_.data_folder,
                                                                     .interface = options_.interface});
  const auto tell = [this](const std::string& message) {
    job_.update([&](JobStatus& status) { status.message = message; });
  };
  if (!remote_->gather(tell)) return false;
  world_size_ = static_cast<int>(remote_->world_size());
  if (world_size_ == host_size_) {
    remote_.reset();
  } else if (!remote_->prepare(tell)) {
    return false;
  }
  if (world_size_ == wanted) return true;
  log(LogLevel::kWarning, "training job has fewer ranks", {{"job", job_.id()}, {"ranks", world_size_}, {"of", wanted}});
  tell(concat("goes on with ", world_size_, " of ", wanted, " ranks: there were no more hosts"));
  return true;
}

void WorkerGroup::start() {
  const std::string address = remote_ ? remote_->own_address() : "127.0.0.1";
  store_ = std::make_unique<RankStore>(address);
  passed_on_ = JobRequest::kNone;
  RankTask task = this->task();
  task.address = task.store_host = address;
  for (int rank = 0; rank < host_size_; ++rank) {
    task.rank = rank;
    auto link = std::make_unique<LocalRank>(options_.program, options_.host, task, rank == 0 ? job_.stream() : nullptr);
    if (rank == 0) first_ = link.get();
    add_rank(std::move(link));
  }
  if (remote_) {
    for (auto& link : remote_->start(task, host_size_)) add_rank(std::move(link));
  }
  log(LogLevel::kInfo, "training ranks started",
      {{"job", job_.id()},
       {"ranks", world_size_},
       {"start", restarts_},
       {"address", address},
       {"port", store_->server.port()}});
}

std::optional<Trainer::Outcome> WorkerGroup::attempt(Lost& lost) {
  try {
    if (!gather_hosts()) return outcome_of(job_.request());
    start();
    return supervise(lost);
  } catch (const HostDiskError& error) {
    // If the job may continue with fewer ranks, it does so before that node is tried again.
    const DistributionSpec& spec = job_.spec().distribution;
    const bool has_fewer = spec.min_world_size > 0 && spec.min_world_size < spec.world_size;
    const std::chrono::seconds more(has_fewer ? spec.join_timeout_seconds : 0);
    backoff_.add(error.host, error.what(), Clock::now(), more);
    lost.reason = error.what();
    return std::nullopt;
  } catch (const Error& error) {
    // A node was lost.
    if (!remote_ || error.code() != ErrorCode::kUnavailable) throw;
    lost.reason = error.what();
    return std::nullopt;
  }
}

Trainer::Outcome WorkerGroup::run() {
  for (;;) {
    Lost lost;
    const std::optional<Trainer::Outcome> outcome = attempt(lost);
    if (outcome) return *outcome;
    ranks_.clear();
    remote_.reset();
    const int64_t max = *job_.spec().distribution.max_restarts;
    log(LogLevel::kWarning, "training rank lost",
        {{"job", job_.id()}, {"reason", lost.reason}, {"restarts", restarts_}, {"most_restarts", max}});
    if (restarts_ >= max) {
      fail(ErrorCode::kUnavailable, lost.reason, "; all ranks were started again ", restarts_, " times");
    }
    ++restarts_;
    rewind_stream(lost.reason);
    job_.update([&](JobStatus& status) {
      status.message = concat(lost.reason, "; all ranks go on from step ", status.progress.checkpoint_step);
      status.progress.restarts = restarts_;
      status.progress.ranks.clear();
    });
  }
}

// The batches since the last checkpoint are needed again: buffered ones are replayed, and the client must resend the
// others.
void WorkerGroup::rewind_stream(const std::string& reason) {
  const auto stream = job_.stream();
  if (!stream) return;
  const int64_t first = next_batch_after(Checkpoints(options_.folder, job_.spec().checkpoints.keep));
  if (stream->rewind(first)) {
    job_.update([first](JobStatus& status) { status.progress.next_batch = first; });
    return;
  }
  job_.renew_stream(first);
  stream->close(ErrorCode::kUnavailable, concat(reason, "; batches from ", first, " on are needed again"));
}

void WorkerGroup::pass_on(JobRequest request) {
  if (request == passed_on_) return;
  passed_on_ = request;
  // Rank 0 forwards it, so that all ranks stop after the same step. A rank that has ended ignores it.
  first_->write_input(request == JobRequest::kPause ? "pause" : request == JobRequest::kFinish ? "finish" : "stop");
}

std::optional<Trainer::Outcome> WorkerGroup::supervise(Lost& lost) {
  for (;;) {
    const JobRequest request = job_.request();
    if (request == JobRequest::kCancel) return Trainer::Outcome::kCancelled;
    pass_on(request);
    read_news();
    for (const auto& rank : ranks_) {
      if (rank->failure && !rank->failure->is_other) {
        throw Error(rank->failure->error.code(), world_size_ == 1
                                                     ? rank->failure->error.what()
                                                     : concat(name_of(*rank), ": ", rank->failure->error.what()));
      }
    }
    if (const std::optional<Lost> found = lost_rank()) {
      lost = *found;
      return std::nullopt;
    }
    if (!std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended.empty(); })) continue;
    const std::string& ended = ranks_.front()->ended;
    return ended == "done"      ? Trainer::Outcome::kDone
           : ended == "paused"  ? Trainer::Outcome::kPaused
           : ended == "starved" ? Trainer::Outcome::kStarved
                                : Trainer::Outcome::kStopped;
  }
}

std::string WorkerGroup::name_of(const Rank& rank) const {
  return remote_ ? concat("rank ", rank.number, " of host ", rank.link->host()) : concat("rank ", rank.number);
}

void WorkerGroup::read_news() {
  std::vector<pollfd> fds;
  for (const auto& rank : ranks_) rank->link->add_fds(fds);
  wait_for_news(fds);
  if (remote_) remote_->read();
  for (const auto& rank : ranks_) {
    const auto log_line = [&](std::string_view line) {
      // The node of a remote rank logs its output too.
      log(LogLevel::kInfo, "training rank output",
          {{"job", job_.id()}, {"rank", rank->number}, {"host", rank->link->host()}, {"line", line}});
    };
    record_pid(*rank);
    try {
      rank->how = rank->link->read([&](std::string_view line) { take(*rank, line); }, log_line);
    } catch (const Json::exception& error) {
      fail(ErrorCode::kInternal, name_of(*rank), ": sent an invalid message: ", error.what());
    }
  }
}

void WorkerGroup::take(Rank& rank, std::string_view line) {
  rank.heard = Clock::now();
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  const auto waits = json.find("waits");
  if (waits == json.end()) {
    rank.waits_since.reset();
  } else if (!rank.waits_since || waits->get<uint64_t>() != rank.waits) {
    rank.waits_since = rank.heard;
    rank.waits = waits->get<uint64_t>();
  }
  if (json.contains("status")) {
    take_progress(rank, std::string(line));
  } else if (json.contains("ended")) {
    rank.ended = json.at("ended").get<std::string>();
    if (rank.number == 0) warning_ = json.at("warning").get<std::string>();
  } else if (json.contains("failed") && !rank.failure) {
    rank.failure =
        Rank::Failure{Error(error_code_of(json.at("code").get<int64_t>()), json.at("failed").get<std::string>()),
                      json.at("is_other").get<bool>()};
    rank.failed_at = Clock::now();
  }
}

void WorkerGroup::take_progress(Rank& rank, const std::string& line) {
  const Json json = Json::parse(line);
  JobProgress progress = job_status_from_json(json.at("status")).progress;
  if (!progress.ranks.empty()) {
    rank.progress = progress.ranks.front();
    rank.progress.rank = rank.number;
    rank.progress.host = rank.link->host();
  }
  if (rank.number != 0) return;
  std::vector<CurvePoint> points;
  for (const Json& point : json.at("points")) points.push_back(curve_point_from_json(point));
  if (json.contains("is_reset")) {
    job_.set_points(std::move(points));
  } else {
    for (CurvePoint& point : points) job_.add_point(std::move(point));
  }
  progress.ranks.clear();
  for (const auto& each : ranks_) progress.ranks.push_back(each->progress);
  progress.restarts = restarts_;
  const std::string message = json.at("message").get<std::string>();
  const bool is_said = message != message_;
  message_ = message;
  const int64_t checkpoint = job_.status().progress.checkpoint_step;
  job_.update([&](JobStatus& status) {
    status.progress = progress;
    if (is_said) status.message = message;
  });
  if (progress.checkpoint_step == checkpoint) return;
  // Each batch of a stream is one step.
  if (const auto stream = job_.stream()) stream->forget(progress.checkpoint_step);
  options_.saved_status();
}

std::optional<WorkerGroup::Lost> WorkerGroup::lost_rank() const {
  for (const auto& rank : ranks_) {
    if (!rank->ended.empty()) continue;
    const auto named = [&] { return concat(name_of(*rank), " (pid ", rank->link->pid(), ")"); };
    if (rank->how && !rank->failure) return Lost{concat(named(), " was lost: ", *rank->how)};
    if (!rank->failure && Clock::now() - rank->heard > timeout_) {
      return Lost{concat(named(), " has said nothing for ", timeout_.count(), " seconds")};
    }
  }
  // Connections broke and no rank reported a cause.
  for (const auto& rank : ranks_) {
    if (rank->failure && Clock::now() - rank->failed_at > kCauseWait) {
      return Lost{concat(name_of(*rank), ": ", rank->failure->error.what())};
    }
  }
  return lost_together();
}

// All ranks are alive and each waits for another: their connections are dead, unnoticed by TCP.
std::optional<WorkerGroup::Lost> WorkerGroup::lost_together() const {
  const bool are_stuck = std::all_of(ranks_.begin(), ranks_.end(), [&](const auto& rank) {
    return !rank->ended.empty() || (rank->waits_since && Clock::now() - *rank->waits_since > timeout_);
  });
  const bool all_ended =
      std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended.empty(); });
  if (!are_stuck || all_ended) return std::nullopt;
  return Lost{
      concat("all ranks have waited for each other for ", timeout_.count(),
             " seconds: their connections are dead, or so slow that distribution.timeout_seconds is too short")};
}

}  // namespace tensord::server
