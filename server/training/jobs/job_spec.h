#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/device.h"
#include "core/tensor/dtype.h"

namespace tensord::server {

// The specification of a training job. The fields are described in protos/training.proto; here is only what the daemon
// needs beyond that.

struct ModelSource {
  std::string name;
  int64_t version = 0;
  std::string upload_id;
};

// Names of uploaded files in DataSpec.file and EvaluationSpec.file begin so: "@upload-0123456789ab.csv".
inline constexpr const char* kUploadMark = "@";
inline bool is_upload(const std::string& file) { return file.starts_with(kUploadMark); }

struct DataSpec {
  std::string file;  // relative to the data folder
  bool streamed = false;
  std::map<std::string, std::string> inputs;  // argument → array
  std::optional<bool> shuffle;
  bool drop_last = false;
  uint64_t max_buffered_bytes = 0;
  int64_t stream_timeout_seconds = 0;
  std::map<std::string, std::string> image_parameters;  // of folders and archives of images
  double random_resized_crop = 0;                       // smallest share of the area; 0: none
  double random_horizontal_flip = 0;                    // probability

  bool has_image_options() const {
    return !image_parameters.empty() || random_resized_crop != 0 || random_horizontal_flip != 0;
  }
};

struct LossSpec {
  std::string method;
  std::string builtin;
  std::string label;
  std::string output;
  double label_smoothing = 0;
  std::optional<int64_t> ignore_index;
  std::optional<double> delta;
  std::vector<double> class_weights;
};

// Options of an optimizer, by the names in core/nn/optim/optimizer_info.h; flags are 0 or 1.
using OptionValues = std::map<std::string, double>;

struct ParameterGroupSpec {
  std::string pattern;
  bool freeze = false;
  OptionValues options = {};
};

struct OptimizerSpec {
  std::string name;
  OptionValues options = {};
  std::vector<ParameterGroupSpec> groups = {};
};

struct ScheduleSpec {
  std::string name;
  int64_t warmup_steps = 0;
  std::optional<double> warmup_factor;
  bool by_epoch = false;
  int64_t step_size = 0;
  std::vector<int64_t> milestones;
  std::optional<double> gamma;
  int64_t t_max = 0;
  double min_lr = 0;
  std::optional<double> max_lr;
  std::optional<double> pct_start;
  std::optional<double> end_factor;
  std::string metric;
  std::optional<double> factor;
  std::optional<int64_t> patience;
};

struct ClippingSpec {
  double norm = 0;
  double value = 0;
};

struct EvaluationSpec {
  double fraction = 0;
  std::string file;
  int64_t every_steps = 0;
  int64_t batch_size = 0;
  std::vector<std::string> metrics;
  int64_t patience = 0;

  bool is_wanted() const { return fraction > 0 || !file.empty(); }
};

struct CheckpointSpec {
  int64_t every_steps = 0;
  int64_t every_seconds = 0;
  int64_t keep = 0;
};

struct PublishSpec {
  std::string when;
  std::string model;
  std::string metric;
  std::optional<double> bar;

  bool is_wanted() const { return !when.empty() && when != "never"; }
};

struct ResourceSpec {
  int64_t threads = 0;
  uint64_t memory_bytes = 0;
  std::string device;  // empty: the CPU
};

struct DistributionSpec {
  int64_t world_size = 0;
  int64_t processes_per_host = 0;
  std::optional<int64_t> max_restarts;
  int64_t timeout_seconds = 0;
  int64_t join_timeout_seconds = 0;
  std::vector<std::string> hosts;
  bool sync_batch_norm = false;
  int64_t zero = 0;
  std::string compression;
  int64_t compression_rank = 0;
  std::optional<int64_t> compression_start_step;
  std::string backend;
  int64_t min_world_size = 0;

  bool is_wanted() const { return world_size > 0; }
  bool has_several_hosts() const { return world_size > processes_per_host; }
};

struct JobSpec {
  std::string name;
  ModelSource model;
  DataSpec data;
  LossSpec loss;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  ClippingSpec clipping;
  EvaluationSpec evaluation;
  int64_t epochs = 0;
  int64_t steps = 0;
  int64_t batch_size = 0;
  uint64_t seed = 0;
  CheckpointSpec checkpoints;
  PublishSpec publish;
  ResourceSpec resources;
  DistributionSpec distribution;
  int64_t max_seconds = 0;
  std::map<std::string, std::string> tags;
  double ema_decay = 0;
  int64_t accumulation = 1;
  bool deterministic = false;
  double loss_scale = 0;
  std::string precision;                              // "16-mixed" or "bf16-mixed"; empty: the parameters' own types
  std::vector<std::string> activation_checkpointing;  // patterns of modules, or "auto"
};

// Validates all fields and sets the defaults that do not depend on the model or the data. Throws
// Error{kInvalidArgument} that starts with the field: "optimizer.lr: must be …".
void check_job_spec(JobSpec& spec);

// The device of the model and its batches. Throws Error{kInvalidArgument}.
Device device_of_job(const JobSpec& spec);
// The type in which autocast computes the loss; none: no autocast.
std::optional<DType> autocast_type_of_job(const JobSpec& spec);

// The allowed values of these fields, as "step, multi_step, …": for messages and help.
std::string loss_names();
std::string schedule_names();
std::string metric_names();
std::string publish_times();
std::string compression_names();
std::string precision_names();

// Whether larger values of the metric are better: true for accuracies and the like, false for losses and errors.
bool is_more_better(const std::string& metric);
// The N of "top_N_accuracy"; 0 for another name.
int64_t top_n_of(const std::string& metric);
// Whether a name matches a pattern with * (any string) and ? (any character).
bool matches_pattern(const std::string& name, const std::string& pattern);

}  // namespace tensord::server
