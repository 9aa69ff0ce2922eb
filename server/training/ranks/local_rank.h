#pragma once

#include <memory>
#include <string>

#include "core/distributed/launch/child_process.h"
#include "server/training/ranks/rank_task.h"
#include "server/training/ranks/stream_broadcaster.h"
#include "server/training/ranks/worker_handle.h"

namespace tensord::server {

// A rank in a child process, which is killed with the thread that started it.
class LocalRank final : public WorkerHandle {
 public:
  // `program`: the binary with the command kRankCommand. `stream`: the source of its batches; null: files, or another
  // rank. Throws Error{kNotFound}, kUnavailable.
  LocalRank(const std::string& program, std::string host, const RankTask& task,
            std::shared_ptr<BatchStream> stream = nullptr);

  const std::string& host() const override { return host_; }
  int64_t pid() const override { return process_.pid(); }
  // Writes a line to its standard input. False if it does not read any more.
  bool write_input(const std::string& line) { return process_.write_input(line + "\n"); }
  std::optional<std::string> read(const OnLine& on_event, const OnLine& on_output) override;
  void add_fds(std::vector<pollfd>& fds) const override;

 private:
  // Large enough for the curve of a long job.
  static constexpr size_t kMaxEventBytes = 64 << 20;

  const std::string host_;
  distributed::ChildProcess process_;
  bool has_ended_ = false;
  distributed::LineCutter events_{kMaxEventBytes}, output_, errors_;
  std::unique_ptr<StreamBroadcaster> broadcaster_;  // last: it writes to the process
};

// Waits until one of them has news, at most 20 ms.
void wait_for_news(const std::vector<pollfd>& fds);

}  // namespace tensord::server
