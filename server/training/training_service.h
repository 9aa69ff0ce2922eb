#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/repository/repository.h"
#include "server/training/hosts/host_registry.h"
#include "server/training/jobs/file_fingerprint.h"
#include "server/training/jobs/job_store.h"
#include "server/training/jobs/training_job.h"
#include "server/training/publisher.h"

namespace tensord::server {

class JobInputs;
class WorkerGroup;
class Trainer;

// The training jobs of the daemon: takes them, keeps them on disk, and runs them one after the other on threads of low
// priority, so that serving comes first. Thread-safe.
class TrainingService {
 public:
  struct Options {
    std::string folder;                           // jobs and uploads
    std::string data_folder;                      // files that jobs may name; empty: none
    int concurrent_jobs = 1;                      // that run at one time
    int threads = 0;                              // of a job; 0: half of the cores
    int nice = 19;                                // of the jobs' threads; 0: as the threads that serve
    std::string plans = "off";                    // "off", "exact" or "fused": how steps that repeat are planned
    uint64_t memory_bytes = 0;                    // of a job's tensors; 0: no limit
    size_t max_jobs = 1000;                       // that are kept
    uint64_t max_upload_bytes = 0;                // of one upload; 0: no limit
    std::string rank_program = "/proc/self/exe";  // the binary that has the command kRankCommand
    std::string host = "localhost";               // this host's name in jobs of several
    std::string interface;  // that other hosts reach this one by; empty: the one of the route to them
    std::string version;    // of tensord
  };

  // Reads the jobs of the folder, so that clients find them at once; queued ones wait for start(). Throws Error when
  // the folder cannot be used. `repository` and `metrics` must outlive this.
  TrainingService(Options options, Repository& repository, Metrics& metrics);
  ~TrainingService();

  // Works on what is queued, first on what ran when the daemon ended. To be called once the models are loaded.
  void start();
  // Stops the jobs that run, each with a checkpoint; they go on at the next start.
  void stop();

  // Checks the job against its model and queues it. Takes as long as loading the model. Throws Error naming the field.
  JobStatus create(JobSpec spec);
  JobStatus pause(const std::string& id);
  // world_size: ranks from now on, of a job with a distribution; 0: as many as before.
  JobStatus resume(const std::string& id, int64_t world_size = 0);
  JobStatus cancel(const std::string& id);
  // Nobody finds the job any more. One that runs is cancelled; its folder goes when it has stopped, which is waited for
  // a little, since an operator that runs on cannot be interrupted.
  void remove(const std::string& id);
  std::vector<std::shared_ptr<TrainingJob>> jobs() const;  // oldest first
  // Throws Error{kNotFound}.
  std::shared_ptr<TrainingJob> find(const std::string& id) const;
  Repository::RolledBack roll_back(const std::string& model);
  // The hosts that have joined. Closed by stop(), once the jobs have ended.
  HostRegistry& hosts() { return hosts_; }
  // Ranks of one job that a host starts at most: each is a process with the whole model.
  static int64_t max_processes();

  // An archive on its way in. It is there for jobs once finish() was called; without that, nothing is left.
  class Upload {
   public:
    Upload(const TrainingService& service, uint64_t announced_bytes);
    ~Upload();
    void write(std::string_view bytes);
    // Checks that it is an archive. Gives back the upload's id.
    std::string finish();
    uint64_t size_bytes() const { return size_bytes_; }

   private:
    const TrainingService& service_;
    const uint64_t announced_bytes_;
    uint64_t size_bytes_ = 0;
    std::string id_;
    std::ofstream file_;
    bool is_finished_ = false;
  };

 private:
  void read_jobs();
  void add_job(std::shared_ptr<TrainingJob> job);
  void read_points(TrainingJob& job) const;
  void enqueue(const std::shared_ptr<TrainingJob>& job);
  bool take_from_queue(const std::shared_ptr<TrainingJob>& job);
  void work();
  void run(const std::shared_ptr<TrainingJob>& job);
  void end_run(const std::shared_ptr<TrainingJob>& job);
  struct Ended {
    JobState state;
    std::string message;
  };
  std::shared_ptr<TrainingJob> with_world_size(const TrainingJob& job, int64_t world_size);
  std::unique_ptr<Trainer> make_trainer(TrainingJob& job);
  std::unique_ptr<WorkerGroup> make_worker_group(TrainingJob& job);
  std::optional<Ended> train_here(TrainingJob& job, const JobInputs& inputs);
  std::optional<Ended> train_by_ranks(TrainingJob& job, const JobInputs& inputs);
  Ended publish(TrainingJob& job, const JobInputs& inputs, const std::string& warning,
                const std::function<void(const std::string& path)>& write);
  std::optional<Ended> train(TrainingJob& job);
  void finish(TrainingJob& job, JobState state, const std::string& message);
  void save(const TrainingJob& job);
  // Where a job's archive is, and which version that is.
  Repository::Source source_of(const ModelSource& model) const;
  // The job's own copy of its model, with all that it reads.
  static void keep_base(const std::filesystem::path& model, const std::filesystem::path& base);
  void check_room_for_job() const;
  void check_ranks(const JobSpec& spec) const;
  void check_against_model(const JobSpec& spec, const std::string& archive) const;
  std::vector<TrainingSample> samples() const;

  const Options options_;
  Repository& repository_;
  Metrics& metrics_;
  const JobStore store_;
  Publisher publisher_;
  HostRegistry hosts_;
  FingerprintCache fingerprints_;
  Mutex create_mutex_;  // one job at a time is made
  Mutex save_mutex_;    // the newest status is saved last
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<TrainingJob>> jobs_ TENSORD_GUARDED_BY(mutex_);
  std::vector<std::string> order_ TENSORD_GUARDED_BY(mutex_);  // of creation
  std::deque<std::shared_ptr<TrainingJob>> queue_ TENSORD_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<TrainingJob>> running_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_stopping_{false};  // asked by loads of models
  std::vector<Thread> threads_;
};

}  // namespace tensord::server
