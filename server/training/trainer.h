#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/nn/optim/optimizer.h"
#include "core/nn/optim/zero.h"
#include "core/ops/generator.h"
#include "core/tensor/allocator.h"
#include "server/training/checkpoint.h"
#include "server/training/data/batch_source.h"
#include "server/training/jobs/training_job.h"
#include "server/training/learning_rate.h"
#include "server/training/loss_scale.h"
#include "server/training/progress_meter.h"
#include "server/training/ranks/rank_group.h"
#include "server/training/ranks/statistics_groups.h"
#include "server/training/training_model.h"
#include "server/training/training_step.h"
#include "server/training/weight_average.h"

namespace tensord::server {

// Trains one job on the calling thread, from its last checkpoint or from the start, until it is done or a request stops
// it. Checkpoints contain everything that later steps depend on, so a job that was killed and resumed ends with the
// same weights, bit for bit. Not thread-safe.
class Trainer {
 public:
  struct Options {
    std::filesystem::path folder;                // of the job
    std::string base_archive;                    // the archive that it starts from
    std::string data_folder;                     // the server's data folder; empty: none
    int threads = 1;                             // for one step
    std::string plans = "off";                   // "off", "exact" or "fused": how steps that repeat are planned
    uint64_t memory_bytes = 0;                   // memory limit of the job's tensors; 0: none
    std::function<void()> saved_status;          // called when the status should be saved
    distributed::ProcessGroup* group = nullptr;  // for distributed jobs; must outlive the trainer
  };
  // Loads the model, the data and the checkpoint. Throws Error.
  Trainer(TrainingJob& job, Options options);
  ~Trainer();

  enum class Outcome { kDone, kPaused, kCancelled, kStopped, kStarved };
  // Throws Error naming the step and the batch. Checkpoints are kept.
  Outcome run();

  // What its owner should know: why the job ended early, or a warning about a job that is valid but probably not
  // intended. May be empty.
  std::string warning() const;

  // After kDone: writes the model to publish, with the last weights or the best ones.
  void write_result(const std::string& path);

 private:
  void restore(const Checkpoints::Found& found);
  ops::Value state() const;
  int64_t total_steps() const;
  double epoch() const;
  bool is_complete() const;
  // Of the client, or of the job's own time limit.
  JobRequest request() const;
  double trained_seconds() const;
  std::optional<Outcome> wanted() const;
  bool ends_early();
  std::optional<Outcome> advance();
  void end_epoch();
  void train(std::span<const std::vector<Tensor>> batches);
  std::unique_ptr<BatchSource> make_source();
  std::unique_ptr<TrainingStep> make_update();
  std::map<std::string, double> measure();
  bool is_first() const { return !ranks_ || ranks_->is_first(); }
  void record_local_operators();
  void record_plan(const TrainingStep::Done& update);
  void record_rank(std::span<const Tensor> batch);
  void check_parameters(const char* when) const;
  void evaluate();
  void record_best(const std::map<std::string, double>& metrics);
  bool checkpoint_time_is_over() const;
  void checkpoint_if_due();
  void checkpoint();
  void try_checkpoint();
  void gather();
  void remove_old_best();
  std::filesystem::path best_file(int64_t step) const;
  std::function<bool()> cancel_check() const;

  TrainingJob& job_;
  const JobSpec& spec_;
  const Options options_;
  const OwnerId owner_;
  const Checkpoints checkpoints_;
  ops::Generator generator_;                      // of the steps
  ops::Generator order_;                          // of the batches
  std::unique_ptr<StatisticsGroups> statistics_;  // null: batch norm statistics are per rank
  std::unique_ptr<TrainingModel> model_;
  std::vector<std::pair<std::string, Tensor>> parameters_;  // parameters that are trained
  JobData data_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  std::unique_ptr<nn::ZeroRedundancy> zero_;  // null: each rank has the whole optimizer state
  std::unique_ptr<LearningRate> learning_rate_;
  std::optional<LossScale> loss_scale_;
  std::unique_ptr<WeightAverage> average_;  // null: none
  std::unique_ptr<ProgressMeter> meter_;
  std::unique_ptr<RankGroup> ranks_;  // null: single process
  std::unique_ptr<TrainingStep> update_;
  JobRequest agreed_ = JobRequest::kNone;  // agreed by all ranks after the last step
  bool checkpoint_is_agreed_ = false;
  // From a checkpoint: per-rank state, gathered on rank 0. None: there is none, or it is equal on all ranks.
  ops::Value optimizer_state_, compression_state_;
  int64_t own_samples_ = 0;  // of this run and rank
  std::string plan_said_;    // last logged message about plans

  // Saved in checkpoints:
  int64_t step_ = 0;
  int64_t epoch_ = 0;          // completed epochs
  int64_t epoch_batches_ = 0;  // batches of this epoch
  int64_t evaluated_step_ = -1;
  int64_t best_step_ = 0;
  double best_metric_ = 0;
  std::optional<double> best_loss_;  // of the same evaluation; none: not measured
  bool stream_is_complete_ = false;
  std::string end_reason_;         // not empty: the job ends early; "" in checkpoints of jobs that go on
  bool is_finished_ = false;       // by a client, by the time limit or by evaluations that do not get better
  int64_t stale_evaluations_ = 0;  // since the last one that was better than all before
  double seconds_before_ = 0;      // trained before this run

  int64_t checkpoint_step_ = -1;
  int64_t checkpoint_ns_ = 0;  // time of the last attempt
  const int64_t started_ns_ = Clock::system().now_ns();
};

}  // namespace tensord::server
