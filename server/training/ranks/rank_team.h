#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/training/jobs/training_job.h"
#include "server/training/trainer.h"

namespace tensord::server {

// The processes that train one job together, seen from the daemon: starts them, passes on what is wanted of the job,
// takes over their progress, and starts all of them again, from the last checkpoint, when one was killed or froze. Runs
// on the calling thread, with which the processes die. Not thread-safe.
class RankTeam {
 public:
  struct Options {
    std::string program;  // the binary that has the command kRankCommand
    std::filesystem::path folder;
    std::string base_archive, data_folder;
    int threads = 1;            // of all ranks together
    uint64_t memory_bytes = 0;  // of all ranks together; 0: no limit
    int nice = 0;
    std::function<void()> saved_status;
  };
  RankTeam(TrainingJob& job, Options options);
  ~RankTeam();  // kills the processes

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
  void start();
  // An outcome, or why all have to start again. Throws Error.
  std::optional<Trainer::Outcome> supervise(Lost& lost);
  void wait_for_news();
  void pass_requests_on();
  void take(Rank& rank, std::string_view line);
  void take_progress(Rank& rank, const std::string& line);
  std::optional<Lost> lost_rank();

  TrainingJob& job_;
  const Options options_;
  const int world_size_;
  const std::chrono::seconds timeout_;
  std::unique_ptr<class RankStore> store_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  JobRequest passed_on_ = JobRequest::kNone;
  std::string warning_, message_;  // of rank 0
  int64_t restarts_ = 0;
};

}  // namespace tensord::server
