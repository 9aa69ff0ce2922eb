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

// The processes that train one job together, seen from the daemon that the job was given to: starts them here and on
// other hosts, passes on what is wanted of the job, takes over their progress, and starts all of them again, from the
// last checkpoint, when one was lost, or its host was, or another host's disk is full or fails. Runs on the calling
// thread, with which the processes of this host die. Not thread-safe.
class WorkerGroup {
 public:
  struct Options {
    std::string program;  // the binary that has the command kRankCommand
    std::filesystem::path folder;
    std::string base_archive, data_folder;
    int threads = 1;            // of all ranks of a host together
    uint64_t memory_bytes = 0;  // of all ranks of a host together; 0: no limit
    int nice = 0;
    std::string host;       // this host's name
    std::string interface;  // that other hosts reach this one by; empty: the one of the route to them
    HostRegistry* hosts = nullptr;
    FingerprintCache* fingerprints = nullptr;
    std::function<void()> saved_status;
  };
  WorkerGroup(TrainingJob& job, Options options);
  ~WorkerGroup();  // kills the processes

  // Throws what made a rank fail, or Error{kUnavailable} when ranks were lost too often.
  Trainer::Outcome run();
  const std::string& warning() const { return warning_; }
  // After kDone, where the job publishes: what rank 0 wrote.
  std::filesystem::path result() const { return options_.folder / "result.pt"; }

 private:
  struct Rank;
  struct Lost {
    std::string reason;
  };
  // Each: an outcome, or why all have to start again. Throws Error.
  std::optional<Trainer::Outcome> attempt(Lost& lost);
  std::optional<Trainer::Outcome> supervise(Lost& lost);
  // False: something else is wanted of the job.
  bool gather_hosts();
  void start();
  void rewind_stream(const std::string& reason);
  RankTask task() const;
  void add_rank(std::unique_ptr<WorkerHandle> link);
  void read_news();
  void pass_on(JobRequest request);  // kNone only before anything else
  void take(Rank& rank, std::string_view line);
  void take_progress(Rank& rank, const std::string& line);
  std::optional<Lost> lost_rank() const;
  std::optional<Lost> lost_together() const;
  std::string name_of(const Rank& rank) const;
  void record_pid(Rank& rank);

  TrainingJob& job_;
  const Options options_;
  int world_size_;       // ranks, of this start
  const int host_size_;  // of them on each host
  const std::chrono::seconds timeout_;
  std::unique_ptr<class RankStore> store_;
  HostBackoff backoff_;
  std::unique_ptr<RemoteHosts> remote_;  // null: all ranks are here
  std::vector<std::unique_ptr<Rank>> ranks_;
  LocalRank* first_ = nullptr;  // rank 0, which is always here
  JobRequest passed_on_ = JobRequest::kNone;
  std::string warning_, message_;  // of rank 0
  int64_t restarts_ = 0;
};

}  // namespace tensord::server
