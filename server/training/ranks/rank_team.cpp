#include "server/training/ranks/rank_team.h"

#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/distributed/launch/child_process.h"
#include "core/distributed/proof.h"
#include "core/distributed/store/tcp_server.h"
#include "server/training/jobs/job_json.h"
#include "server/training/ranks/rank_process.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using distributed::ChildProcess;

constexpr auto kPollInterval = 20ms;
// Who only heard of an error from another rank waits so long for that one to say more.
constexpr auto kCauseWait = 2s;

std::string hex_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

}  // namespace

// Where the ranks of one start meet, by a secret of their own.
class RankStore {
 public:
  RankStore()
      : secret(hex_of(distributed::random_bytes(32))), server({.host = "127.0.0.1", .port = 0, .token = secret}) {}
  const std::string secret;
  distributed::TcpStoreServer server;
};

struct RankTeam::Rank {
  Rank(int number, const ChildProcess::Options& options) : number(number), process(options) {}
  struct Failure {
    Error error;
    bool is_other;
  };

  const int number;
  ChildProcess process;
  distributed::LineCutter events, output, errors;
  Clock::time_point heard = Clock::now();
  RankProgress progress;
  std::string ended;  // "done"
  std::optional<Failure> failure;
  Clock::time_point failed_at;
};

RankTeam::RankTeam(TrainingJob& job, Options options)
    : job_(job),
      options_(std::move(options)),
      world_size_(static_cast<int>(job.spec().distribution.world_size)),
      timeout_(job.spec().distribution.timeout_seconds) {}
RankTeam::~RankTeam() = default;

void RankTeam::start() {
  ranks_.clear();
  store_ = std::make_unique<RankStore>();
  passed_on_ = JobRequest::kNone;
  for (int rank = 0; rank < world_size_; ++rank) {
    const int threads = std::max(1, options_.threads / world_size_);
    auto& made = ranks_.emplace_back(
        std::make_unique<Rank>(rank, ChildProcess::Options{.arguments = {options_.program, kRankCommand},
                                                           .environment = {concat("OMP_NUM_THREADS=", threads)},
                                                           .has_input = true,
                                                           .has_events = true}));
    made->progress.rank = rank;
    made->progress.pid = made->process.pid();
    const Json task = {{"job", to_json(job_.status())},
                       {"folder", options_.folder.string()},
                       {"base_archive", options_.base_archive},
                       {"data_folder", options_.data_folder},
                       {"threads", threads},
                       {"memory_bytes", options_.memory_bytes / static_cast<uint64_t>(world_size_)},
                       {"rank", rank},
                       {"nice", options_.nice},
                       {"port", store_->server.port()},
                       {"secret", store_->secret},
                       {"result", result().string()}};
    if (!made->process.write_input(task.dump() + "\n")) {
      fail(ErrorCode::kUnavailable, "rank ", rank, " ended before it began");
    }
  }
  log(LogLevel::kInfo, "training ranks started",
      {{"job", job_.id()}, {"ranks", world_size_}, {"start", restarts_}, {"port", store_->server.port()}});
}

Trainer::Outcome RankTeam::run() {
  for (;;) {
    start();
    Lost lost;
    const std::optional<Trainer::Outcome> outcome = supervise(lost);
    if (outcome) return *outcome;
    ranks_.clear();
    const int64_t most = *job_.spec().distribution.max_restarts;
    log(LogLevel::kWarning, "training rank lost",
        {{"job", job_.id()}, {"reason", lost.reason}, {"restarts", restarts_}, {"most_restarts", most}});
    if (restarts_ >= most) {
      fail(ErrorCode::kUnavailable, lost.reason, "; all ranks were started again ", restarts_, " times");
    }
    ++restarts_;
    job_.update([&](JobStatus& status) {
      status.message = concat(lost.reason, "; all ranks go on from step ", status.progress.checkpoint_step);
      status.progress.restarts = restarts_;
      status.progress.ranks.clear();
    });
  }
}

void RankTeam::pass_requests_on() {
  const JobRequest request = job_.request();
  if (request == passed_on_ || request == JobRequest::kNone || request == JobRequest::kCancel) return;
  passed_on_ = request;
  // Rank 0 tells the others, so that all stop after the same step. One that has ended hears nothing.
  ranks_.front()->process.write_input(request == JobRequest::kPause ? "pause\n" : "stop\n");
}

std::optional<Trainer::Outcome> RankTeam::supervise(Lost& lost) {
  for (;;) {
    if (job_.request() == JobRequest::kCancel) return Trainer::Outcome::kCancelled;
    pass_requests_on();
    wait_for_news();
    for (const auto& rank : ranks_) {
      if (rank->failure && !rank->failure->is_other) {
        throw Error(rank->failure->error.code(),
                    world_size_ == 1 ? rank->failure->error.what()
                                     : concat("rank ", rank->number, ": ", rank->failure->error.what()));
      }
    }
    if (const std::optional<Lost> found = lost_rank()) {
      lost = *found;
      return std::nullopt;
    }
    if (!std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended.empty(); })) continue;
    const std::string& ended = ranks_.front()->ended;
    return ended == "done"     ? Trainer::Outcome::kDone
           : ended == "paused" ? Trainer::Outcome::kPaused
                               : Trainer::Outcome::kStopped;
  }
}

void RankTeam::wait_for_news() {
  std::vector<pollfd> fds;
  for (const auto& rank : ranks_) {
    if (rank->process.status()) continue;
    for (const int fd : {rank->process.events(), rank->process.output(), rank->process.errors()}) {
      fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
  }
  poll(fds.data(), fds.size(), static_cast<int>(kPollInterval.count()));
  // A pipe that one side closed is always ready.
  if (std::any_of(fds.begin(), fds.end(), [](const pollfd& fd) { return fd.revents == POLLHUP; })) {
    poll(nullptr, 0, static_cast<int>(kPollInterval.count()));
  }
  for (const auto& rank : ranks_) {
    // In this order: all that it said is read once it is seen to have ended.
    const bool has_ended = rank->process.status().has_value();
    const auto read = [&](int fd, distributed::LineCutter& lines, const auto& on_line) {
      std::string bytes;
      ChildProcess::read_some(fd, bytes);
      lines.add(bytes, on_line);
      if (has_ended) lines.finish(on_line);
    };
    read(rank->process.events(), rank->events, [&](std::string_view line) { take(*rank, line); });
    const auto log_line = [&](std::string_view line) {
      log(LogLevel::kInfo, "training rank says", {{"job", job_.id()}, {"rank", rank->number}, {"line", line}});
    };
    read(rank->process.output(), rank->output, log_line);
    read(rank->process.errors(), rank->errors, log_line);
  }
}

void RankTeam::take(Rank& rank, std::string_view line) {
  rank.heard = Clock::now();
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty()) return;
  if (json.contains("status")) {
    take_progress(rank, std::string(line));
  } else if (json.contains("ended")) {
    rank.ended = json["ended"].get<std::string>();
    if (rank.number == 0) warning_ = json["warning"].get<std::string>();
  } else if (json.contains("failed") && !rank.failure) {
    rank.failure =
        Rank::Failure{Error(static_cast<ErrorCode>(json["code"].get<int>()), json["failed"].get<std::string>()),
                      json["is_other"].get<bool>()};
    rank.failed_at = Clock::now();
  }
}

void RankTeam::take_progress(Rank& rank, const std::string& line) {
  const Json json = Json::parse(line);
  JobProgress progress = job_status_from_json(json["status"]).progress;
  if (!progress.ranks.empty()) rank.progress = progress.ranks.front();
  if (rank.number != 0) return;
  std::vector<CurvePoint> points;
  for (const Json& point : json["points"]) points.push_back(curve_point_from_json(point));
  if (json.contains("is_reset")) {
    job_.set_points(std::move(points));
  } else {
    for (CurvePoint& point : points) job_.add_point(std::move(point));
  }
  progress.ranks.clear();
  for (const auto& each : ranks_) progress.ranks.push_back(each->progress);
  progress.restarts = restarts_;
  const std::string message = json["message"].get<std::string>();
  const bool is_said = message != message_;
  message_ = message;
  const int64_t checkpoint = job_.status().progress.checkpoint_step;
  job_.update([&](JobStatus& status) {
    status.progress = progress;
    if (is_said) status.message = message;
  });
  if (progress.checkpoint_step != checkpoint) options_.saved_status();
}

std::optional<RankTeam::Lost> RankTeam::lost_rank() {
  for (const auto& rank : ranks_) {
    if (!rank->ended.empty()) continue;
    if (rank->process.status() && !rank->failure) {
      return Lost{concat("rank ", rank->number, " (pid ", rank->process.pid(),
                         ") was lost: ", distributed::describe_status(*rank->process.status()))};
    }
    if (!rank->failure && Clock::now() - rank->heard > timeout_) {
      return Lost{concat("rank ", rank->number, " (pid ", rank->process.pid(), ") has said nothing for ",
                         timeout_.count(), " seconds")};
    }
  }
  // Connections broke, and nobody says why.
  for (const auto& rank : ranks_) {
    if (rank->failure && Clock::now() - rank->failed_at > kCauseWait) {
      return Lost{concat("rank ", rank->number, ": ", rank->failure->error.what())};
    }
  }
  return std::nullopt;
}

}  // namespace tensord::server
