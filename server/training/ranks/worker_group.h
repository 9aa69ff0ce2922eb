#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/training/jobs/training_job.h"
#include "server/training/ranks/remote_hosts.h"
#include "server/training/ranks/worker_handle.h"
#include "server/training/trainer.h"

namespace tensord::server {

class LocalRank;

// Runs the processes that train one job together: starts them here and on other hosts, forwards requests, collects
// their progress, and restarts all of them from the last checkpoint if one was lost, its host was lost, or a host's
// disk failed. Runs on the calling thread; the processes on this host are killed with it. Not thread-safe.
class WorkerGroup {
 public:
  struct Options {
    std::string program;  // the binary with the command kRankCommand
    std::filesystem::path folder;
    std::string base_archive, data_folder;
    int threads = 1;            // of all ranks of a host together
    uint64_t memory_bytes = 0;  // of all ranks of a host together; 0: no limit
    int nice = 0;
    std::string host;  // of this host
    std::string
        interface;  // network interface that other hosts use to reach this one; empty: the one that routes to them
    HostRegistry* hosts = nullptr;
    FingerprintCache* fingerprints = nullptr;
    std::function<void()> saved_status;
  };
  WorkerGroup(TrainingJob& job, Options options);
  ~WorkerGroup();  // kills the processes

  // Throws the error that made a rank fail, or Error{kUnavailable} if ranks were lost too often.
  Trainer::Outcome run();
  const std::string& warning() const { return warning_; }
  // After kDone, if the job publishes: the file that rank 0 wrote.
  std::filesystem::path result() const { return options_.folder / "result.pt"; }

 private:
  struct Rank;
  struct Lost {
    std::string reason;
  };
  // Each returns an outcome, or none if all ranks have to restart. Throws Error.
  std::optional<Trainer::Outcome> attempt(Lost& lost);
  std::optional<Trainer::Outcome> supervise(Lost& lost);
  // False: a request for the job arrived.
  bool gather_hosts();
  void start();
  void rewind_stream(const std::string& reason);
  RankTask task() const;
  void add_rank(std::unique_ptr<WorkerHandle> link);
  void read_news();
  void pass_on(JobRequest request);  // kNone only before any other request
  void take(Rank& rank, std::string_view line);
  void take_progress(Rank& rank, const std::string& line);
  std::optional<Lost> lost_rank() const;
  std::optional<Lost> lost_together() const;
  std::string name_of(const Rank& rank) const;
  void record_pid(Rank& rank);

  TrainingJob& job_;
  const Options options_;
  int world_size_;       // ranks of this start
  const int host_size_;  // ranks per host
  const std::chrono::seconds timeout_;
  std::unique_ptr<class RankStore> store_;
  HostBackoff backoff_;
  std::unique_ptr<RemoteHosts> remote_;  // null: all ranks are on this host
  std::vector<std::unique_ptr<Rank>> ranks_;
  LocalRank* first_ = nullptr;  // rank 0, which is always on this host
  JobRequest passed_on_ = JobRequest::kNone;
  std::string warning_, message_;  // of rank 0
  int64_t restarts_ = 0;
};

}  // namespace tensord::server
