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
class TrainingModel;

// The daemon's training jobs: accepts them, stores them on disk, and runs them in order on threads of low priority, so
// that serving comes first. Thread-safe.
class TrainingService {
 public:
  struct Options {
    std::string folder;                           // of jobs and uploads
    std::string data_folder;                      // files that jobs may use; empty: none
    int concurrent_jobs = 1;                      // number of running jobs
    int threads = 0;                              // per job; 0: half of the cores
    int nice = 19;                                // nice value of the jobs' threads; 0: as for serving
    std::string plans = "off";                    // "off", "exact" or "fused": how steps that repeat are planned
    uint64_t memory_bytes = 0;                    // of a job's tensors; 0: no limit
    size_t max_jobs = 1000;                       // stored jobs
    uint64_t max_upload_bytes = 0;                // of one upload; 0: no limit
    int transfer_timeout_secs = 300;              // without a message of an upload, or one taken of a download
    std::string rank_program = "/proc/self/exe";  // the binary that has the command kRankCommand
    std::string host = "localhost";               // this host's name in jobs of several
    std::string
        interface;  // network interface that other hosts use to reach this one; empty: the one that routes to them
    std::string version;  // of tensord
  };

  // Reads the stored jobs, so that clients find them at once; queued ones wait for start(). Throws Error if the folder
  // cannot be used. `repository` and `metrics` must outlive this.
  TrainingService(Options options, Repository& repository, Metrics& metrics);
  ~TrainingService();

  // Starts running the queued jobs, first those that ran when the daemon ended. Call it once the models are loaded.
  void start();
  // Stops the running jobs, each with a checkpoint; they continue at the next start.
  void stop();

  // Validates the job against its model and queues it. Takes as long as loading the model. Throws Error naming the
  // field.
  // `owner`: of the uploads that it may use, see JobStore; it names the client, such as by its token.
  JobStatus create(JobSpec spec, const std::string& owner = {});
  JobStatus pause(const std::string& id);
  // world_size: number of ranks from now on, for a distributed job; 0: unchanged.
  JobStatus resume(const std::string& id, int64_t world_size = 0);
  JobStatus cancel(const std::string& id);
  // Ends the training after the current step, or at the last checkpoint, as if it were complete.
  JobStatus finish_training(const std::string& id);
  // Removes the job. A running job is cancelled; its folder is removed when it has stopped. Waits a short time for
  // that, because a running operator cannot be interrupted.
  void remove(const std::string& id);
  std::vector<std::shared_ptr<TrainingJob>> jobs() const;  // oldest first
  // By its id, or by its name if only one job has it. Throws Error{kNotFound}, kInvalidArgument if several have it.
  std::shared_ptr<TrainingJob> find(const std::string& id) const;
  Repository::RolledBack roll_back(const std::string& model);
  int transfer_timeout_secs() const { return options_.transfer_timeout_secs; }
  // The hosts that have joined. Closed by stop(), after the jobs have ended.
  HostRegistry& hosts() { return hosts_; }
  // The most ranks of one job that a host starts: each is a process with the whole model.
  static int64_t max_processes();

  // An archive or a file of data that is being uploaded. Jobs can use it after finish(); otherwise it is removed.
  class Upload {
   public:
    // `data_name`: the name of a file of data, whose ending is its format; empty: it is an archive. `owner`: as in
    // create.
    Upload(const TrainingService& service, uint64_t announced_bytes, const std::string& data_name = {},
           std::string owner = {});
    ~Upload();
    void write(std::string_view bytes);
    // Returns the upload's id, or what data.file is. Checks that an archive is one.
    std::string finish();
    uint64_t size_bytes() const { return size_bytes_; }
    const std::string& sha256() const { return sha256_; }  // of data, after finish()

   private:
    void check_is_there() const;

    const TrainingService& service_;
    const std::string owner_;
    const uint64_t announced_bytes_;
    uint64_t size_bytes_ = 0;
    std::string id_;
    std::ofstream file_;
    const bool is_data_;
    distributed::Digest digest_;
    std::string sha256_;
    bool is_finished_ = false;
  };

  // The files of the model that a job made, until this is destroyed.
  class Download {
   public:
    // Throws Error{kFailedPrecondition} if the job has no weights yet, and kResourceExhausted while too many others are
    // open: each may keep a copy of a model on the disk.
    Download(const TrainingService& service, const std::string& id);
    ~Download();
    Download(const Download&) = delete;
    const std::vector<std::filesystem::path>& files() const { return files_; }
    int64_t step() const { return step_; }  // of the weights

   private:
    // One of the places for downloads.
    struct Place {
      explicit Place(std::atomic<int>& taken);
      ~Place() { --taken; }
      Place(const Place&) = delete;
      std::atomic<int>& taken;
    };

    void write_weights(const TrainingService& service, const std::string& id);
    const Place place_;
    std::filesystem::path folder_;
    std::vector<std::filesystem::path> files_;
    int64_t step_ = 0;
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
  void write(const TrainingJob& job, const JobStatus& status) TENSORD_REQUIRES(save_mutex_);
  // The archive that a job starts from, and its version.
  Repository::Source source_of(const ModelSource& model, const std::string& owner) const;
  // Copies the model, with all files that it reads, into the job's folder.
  static void keep_base(const std::filesystem::path& model, const std::filesystem::path& base);
  // Where the data of a new job is: in the data folder, or uploaded. Empty: there is none.
  struct DataPaths {
    std::string training, evaluation;
  };
  DataPaths data_paths(const JobSpec& spec, const std::string& owner) const;
  std::string data_path(const std::string& file, const std::string& owner, const char* field) const;
  // Gives a new job its own links to the uploads that it uses.
  void keep_data(const JobStatus& job, const DataPaths& paths) const;
  // The folder with the files that the job names.
  std::string data_folder_of(const TrainingJob& job) const;
  void check_room_for_job() const;
  void check_ranks(const JobSpec& spec) const;
  int threads_of(const JobSpec& spec) const;
  void check_against_model(const JobSpec& spec, const std::string& archive, const DataPaths& paths) const;
  void check_data(const char* field, const std::string& path, const JobSpec& spec, const TrainingModel& model) const;
  void add_image_parameters(JobSpec& spec, const DataPaths& paths) const;
  std::vector<TrainingSample> samples() const;

  const Options options_;
  Repository& repository_;
  Metrics& metrics_;
  const JobStore store_;
  Publisher publisher_;
  HostRegistry hosts_;
  FingerprintCache fingerprints_;
  mutable std::atomic<int> downloads_{0};
  Mutex create_mutex_;  // serializes the creation of jobs
  Mutex save_mutex_;    // keeps saved statuses in order
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<TrainingJob>> jobs_ TENSORD_GUARDED_BY(mutex_);
  std::vector<std::string> order_ TENSORD_GUARDED_BY(mutex_);  // in order of creation
  std::deque<std::shared_ptr<TrainingJob>> queue_ TENSORD_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<TrainingJob>> running_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_stopping_{false};  // read by loads of models
  std::vector<Thread> threads_;
};

}  // namespace tensord::server
