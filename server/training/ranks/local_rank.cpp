#include "server/training/ranks/local_rank.h"

#include <algorithm>

#include "core/base/error.h"
#include "server/training/ranks/rank_process.h"

namespace tensord::server {
namespace {

using distributed::ChildProcess;

constexpr int kPollMs = 20;

}  // namespace

LocalRank::LocalRank(const std::string& program, std::string host, const RankTask& task,
                     std::shared_ptr<BatchStream> stream)
    : host_(std::move(host)),
      process_({.arguments = {program, kRankCommand},
                .environment = {concat("OMP_NUM_THREADS=", task.threads)},
                .has_input = true,
                .has_events = true,
                .has_data = stream != nullptr}) {
  if (!write_input(to_text(task))) fail(ErrorCode::kUnavailable, "rank ", task.rank, " ended before it began");
  if (stream) broadcaster_ = std::make_unique<StreamBroadcaster>(std::move(stream), process_.data());
}

std::optional<std::string> LocalRank::read(const OnLine& on_event, const OnLine& on_output) {
  // The status is checked first, so that all output is read before the end is reported.
  const std::optional<int> status = process_.status();
  has_ended_ = status.has_value();
  const auto read = [&](int fd, distributed::LineCutter& lines, const OnLine& on_line) {
    std::string bytes;
    ChildProcess::read_some(fd, bytes);
    lines.add(bytes, on_line);
    if (has_ended_) lines.finish(on_line);
  };
  read(process_.events(), events_, on_event);
  read(process_.output(), output_, on_output);
  read(process_.errors(), errors_, on_output);
  if (!status) return std::nullopt;
  return distributed::describe_status(*status);
}

void LocalRank::add_fds(std::vector<pollfd>& fds) const {
  if (has_ended_) return;
  for (const int fd : {process_.events(), process_.output(), process_.errors()}) {
    fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
}

void wait_for_news(const std::vector<pollfd>& fds) {
  std::vector<pollfd> asked = fds;
  poll(asked.data(), asked.size(), kPollMs);
  // poll() returns immediately for a pipe whose other end is closed.
  if (std::any_of(asked.begin(), asked.end(), [](const pollfd& fd) { return fd.revents == POLLHUP; })) {
    poll(nullptr, 0, kPollMs);
  }
}

}  // namespace tensord::server
