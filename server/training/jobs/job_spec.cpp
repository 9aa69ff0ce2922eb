#include "server/training/jobs/job_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include "core/base/error.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/jobs/optimizer_checks.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxBatchSize = int64_t{1} << 24;
constexpr int64_t kMaxSteps = int64_t{1} << 48;
constexpr size_t kMaxItems = 1024;  // maximum length of lists in a job
constexpr size_t kMaxNameBytes = 256;
constexpr int64_t kMaxSeconds = int64_t{1} << 32;
constexpr size_t kMaxClasses = size_t{1} << 16;

constexpr const char* kLosses[] = {"cross_entropy",   "nll",   "mse", "l1", "smooth_l1", "huber", "bce",
                                   "bce_with_logits", "kl_div"};
constexpr const char* kSchedules[] = {"step", "multi_step", "exponential", "cosine", "one_cycle", "linear", "plateau"};
constexpr const char* kMetrics[] = {"loss", "accuracy", "f1", "precision", "recall", "auc", "mae", "mse", "rmse"};
constexpr const char* kMoreIsBetter[] = {"f1", "precision", "recall", "auc"};
constexpr const char* kPublishTimes[] = {"never", "at_end", "best"};
constexpr const char* kPrecisions[] = {"32", "bf16-mixed", "16-mixed"};
constexpr double kFirstLossScale = 65536;  // of 16-mixed: GradScaler's
constexpr const char* kCompressions[] = {"fp16", "bf16", "powersgd"};

bool is_one_of(const std::string& name, std::span<const char* const> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string join(std::span<const char* const> names) {
  std::string out;
  for (const char* name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

void check_one_of(const char* field, const std::string& name, std::span<const char* const> names) {
  check(is_one_of(name, names), field, ": '", name, "' is not one of ", join(names));
}

void check_at_least(const char* field, int64_t value, int64_t min, int64_t max = kMaxSteps) {
  check(value >= min && value <= max, field, ": must be between ", min, " and ", max, ", got ", value);
}

void check_number(const char* field, double value, double min, double max = INFINITY) {
  check(std::isfinite(value) && value >= min && value <= max, field, ": must be a number of at least ", min,
        max == INFINITY ? std::string() : concat(" and at most ", max), ", got ", value);
}

void check_number(const char* field, const std::optional<double>& value, double min, double max = INFINITY) {
  if (value) check_number(field, *value, min, max);
}

void check_above_zero(const char* field, const std::optional<double>& value) {
  check(!value || (std::isfinite(*value) && *value > 0), field, ": must be a number above 0, got ", value.value_or(0));
}

// Checks a path relative to the data folder, which it must not leave.
void check_file(const char* field, const std::string& file) {
  const std::filesystem::path path(file);
  const bool has_up = std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
  check(!path.is_absolute() && !has_up && file.find('\0') == std::string::npos, field, ": '", file,
        "' must be a path inside of the data folder");
}

void check_plain_name(const char* field, const std::string& name) {
  const bool is_plain = name.size() <= kMaxNameBytes && (name.empty() || name[0] != '.') &&
                        std::none_of(name.begin(), name.end(), [](char c) {
                          return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
                        });
  check(is_plain, field, ": '", name, "' is not a plain name");
}

void check_model(const ModelSource& model) {
  check(!model.name.empty() || !model.upload_id.empty(), "model: needs a name or an upload_id");
  check_plain_name("model.name", model.name);
  check_plain_name("model.upload_id", model.upload_id);
  check(model.version >= 0, "model.version: must not be below 0, got ", model.version);
  check(model.upload_id.empty() || model.version == 0, "model.version: an upload has none");
}

void check_data(DataSpec& data) {
  check(data.streamed == data.file.empty(), "data: needs either a file or streamed");
  check_file("data.file", data.file);
  check(data.inputs.size() <= kMaxItems, "data.inputs: more than ", kMaxItems);
  check_at_least("data.stream_timeout_seconds", data.stream_timeout_seconds, 0, 86400 * 365);
  if (!data.shuffle) data.shuffle = !data.streamed;
  check(!data.streamed || !*data.shuffle, "data.shuffle: streamed batches are used in the order of arrival");
  check(!data.streamed || !data.drop_last, "data.drop_last: streamed batches are used as they arrive");
  check(data.image_parameters.size() <= kMaxItems, "data.image_parameters: more than ", kMaxItems);
  check_number("data.random_resized_crop", data.random_resized_crop, 0, 1);
  check_number("data.random_horizontal_flip", data.random_horizontal_flip, 0, 1);
  check(!data.streamed || !data.has_image_options(),
        "data.image_parameters, random_resized_crop, random_horizontal_flip: are for folders and archives of images");
  if (data.streamed && data.max_buffered_bytes == 0) data.max_buffered_bytes = uint64_t{64} << 20;
  if (data.streamed && data.stream_timeout_seconds == 0) data.stream_timeout_seconds = 60;
}

void check_loss(LossSpec& loss) {
  check(loss.method.empty() != loss.builtin.empty(), "loss: needs either a method or a builtin loss");
  const auto only_for = [&](const char* field, bool is_set, std::initializer_list<const char*> names) {
    check(!is_set || is_one_of(loss.builtin, {names.begin(), names.size()}), "loss.", field, ": is not for ",
          loss.builtin.empty() ? "a method" : loss.builtin);
  };
  if (!loss.builtin.empty()) {
    check_one_of("loss.builtin", loss.builtin, kLosses);
    check(!loss.label.empty(), "loss.label: needed for ", loss.builtin);
  }
  only_for("label_smoothing", loss.label_smoothing != 0, {"cross_entropy"});
  only_for("ignore_index", loss.ignore_index.has_value(), {"cross_entropy", "nll"});
  only_for("delta", loss.delta.has_value(), {"huber", "smooth_l1"});
  only_for("class_weights", !loss.class_weights.empty(), {"cross_entropy", "nll"});
  check(loss.class_weights.size() <= kMaxClasses, "loss.class_weights: more than ", kMaxClasses);
  for (const double weight : loss.class_weights) check_number("loss.class_weights", weight, 0);
  check_number("loss.label_smoothing", loss.label_smoothing, 0, 1);
  check_above_zero("loss.delta", loss.delta);
}

void check_schedule(const JobSpec& job, ScheduleSpec& spec) {
  if (spec.name == "constant") spec.name.clear();
  if (!spec.name.empty()) check_one_of("schedule.name", spec.name, kSchedules);
  check_at_least("schedule.warmup_steps", spec.warmup_steps, 0);
  check(spec.warmup_steps == 0 || spec.name != "one_cycle",
        "schedule.warmup_steps: one_cycle has a warm-up of its own");
  check_number("schedule.warmup_factor", spec.warmup_factor, 0, 1);
  check(!spec.by_epoch || !job.data.streamed, "schedule.by_epoch: streamed data has no epochs");
  if (spec.name == "step") check_at_least("schedule.step_size", spec.step_size, 1);
  if (spec.name == "multi_step") {
    check(!spec.milestones.empty() && spec.milestones.size() <= kMaxItems, "schedule.milestones: needs 1 to ",
          kMaxItems);
    check(std::is_sorted(spec.milestones.begin(), spec.milestones.end()) && spec.milestones.front() > 0,
          "schedule.milestones: must be above 0 and ascend");
  }
  check_above_zero("schedule.gamma", spec.gamma);
  check_at_least("schedule.t_max", spec.t_max, 0);
  check_number("schedule.min_lr", spec.min_lr, 0);
  check_above_zero("schedule.max_lr", spec.max_lr);
  check_number("schedule.pct_start", spec.pct_start, 0, 1);
  check_number("schedule.end_factor", spec.end_factor, 0, 1);
  check_number("schedule.factor", spec.factor, 0, 1);
  if (spec.patience) check_at_least("schedule.patience", *spec.patience, 0);
  const bool needs_length =
      spec.name == "one_cycle" || (spec.t_max == 0 && (spec.name == "cosine" || spec.name == "linear"));
  check(!needs_length || job.epochs > 0 || job.steps > 0, "schedule: ", spec.name,
        " needs to know how long the job lasts: give steps");
  if (spec.name != "plateau") return;
  if (spec.metric.empty()) spec.metric = "loss";
  check(job.evaluation.is_wanted(), "schedule.name: plateau looks at an evaluation, but there is none");
}

void check_metric(const char* field, const std::string& metric, const LossSpec& loss) {
  check(is_one_of(metric, kMetrics) || top_n_of(metric) > 0 || EvaluationMetrics::is_own(metric), field, ": '", metric,
        "' is not one of ", metric_names());
  check(metric == "loss" || !loss.label.empty(), field, ": ", metric, " needs loss.label");
}

void check_evaluation(const JobSpec& job, EvaluationSpec& spec) {
  check(spec.fraction >= 0 && spec.fraction < 1, "evaluation.fraction: must be at least 0 and below 1, got ",
        spec.fraction);
  check_file("evaluation.file", spec.file);
  check(spec.file.empty() || job.data.streamed || is_upload(spec.file) == is_upload(job.data.file),
        "evaluation.file: must be uploaded if data.file is, and only then");
  check(spec.fraction == 0 || spec.file.empty(), "evaluation: needs either a fraction or a file");
  check(spec.fraction == 0 || !job.data.streamed, "evaluation.fraction: streamed data needs a file to evaluate with");
  check_at_least("evaluation.every_steps", spec.every_steps, 0);
  check_at_least("evaluation.batch_size", spec.batch_size, 0, kMaxBatchSize);
  check(spec.metrics.size() <= 64, "evaluation.metrics: more than 64");
  check(spec.metrics.empty() || spec.is_wanted(), "evaluation.metrics: needs a fraction or a file");
  check_at_least("evaluation.patience", spec.patience, 0);
  check(spec.patience == 0 || spec.is_wanted(), "evaluation.patience: needs a fraction or a file");
  if (!spec.is_wanted()) return;
  if (spec.metrics.empty()) spec.metrics = {"loss"};
  if (spec.batch_size == 0) spec.batch_size = job.batch_size;
  for (const std::string& metric : spec.metrics) check_metric("evaluation.metrics", metric, job.loss);
}

void check_is_evaluated(const char* field, const std::string& metric, const EvaluationSpec& evaluation) {
  const auto& metrics = evaluation.metrics;
  check(std::find(metrics.begin(), metrics.end(), metric) != metrics.end(), field, ": '", metric,
        "' is not one of evaluation.metrics");
}

void check_publish(const JobSpec& job, PublishSpec& spec) {
  if (spec.when.empty()) spec.when = "never";
  check_one_of("publish.when", spec.when, kPublishTimes);
  check_plain_name("publish.model", spec.model);
  if (spec.model.empty()) spec.model = job.model.name;
  check(!spec.is_wanted() || !spec.model.empty(), "publish.model: needed for an upload without a name");
  const bool needs_metric = spec.bar.has_value() || spec.when == "best" || job.evaluation.patience > 0;
  if (spec.metric.empty() && needs_metric) {
    check(!job.evaluation.metrics.empty(), "publish.metric: there is no evaluation");
    spec.metric = job.evaluation.metrics.front();
  }
  if (!spec.metric.empty()) check_is_evaluated("publish.metric", spec.metric, job.evaluation);
  check(!spec.bar || std::isfinite(*spec.bar), "publish.bar: must be a number");
}

void check_tags(const JobSpec& spec) {
  check(spec.tags.size() <= 64, "tags: more than 64");
  for (const auto& [name, value] : spec.tags) {
    check(!name.empty() && name.size() <= kMaxNameBytes && value.size() <= kMaxNameBytes, "tags: '", name,
          "' or its value is empty or longer than ", kMaxNameBytes, " bytes");
  }
}

void check_precision(JobSpec& spec) {
  if (!spec.precision.empty()) check_one_of("precision", spec.precision, kPrecisions);
  if (spec.precision == "32") spec.precision.clear();
  if (spec.precision == "16-mixed" && spec.loss_scale == 0) spec.loss_scale = kFirstLossScale;
  check(spec.precision.empty() || spec.loss.builtin != "bce" || device_of_job(spec).is_host(),
        "precision: ", spec.precision,
        " is not for bce on a GPU, whose probabilities would be rounded; take bce_with_logits");
  const char* const because = spec.precision == "16-mixed" ? " (16-mixed has one)" : "";
  check(spec.loss_scale >= 0 && std::isfinite(spec.loss_scale), "loss_scale: must be at least 0, got ",
        spec.loss_scale);
  check(spec.loss_scale == 0 || spec.distribution.compression != "powersgd", "loss_scale: not with powersgd", because,
        ", which keeps the errors of gradients that are not finite");
  check(spec.loss_scale == 0 || spec.optimizer.name != "lbfgs", "loss_scale: not with lbfgs", because);
}

void check_activation_checkpointing(const JobSpec& spec) {
  const std::vector<std::string>& patterns = spec.activation_checkpointing;
  check(patterns.size() <= kMaxItems, "activation_checkpointing: more than ", kMaxItems, " patterns");
  for (const std::string& pattern : patterns) {
    check(!pattern.empty() && pattern.size() <= kMaxNameBytes,
          "activation_checkpointing: a pattern is empty or longer than ", kMaxNameBytes, " bytes");
  }
  check(patterns.empty() || !spec.distribution.sync_batch_norm,
        "activation_checkpointing: not with distribution.sync_batch_norm, whose ranks would exchange statistics again");
}

void check_length(JobSpec& spec) {
  check_at_least("epochs", spec.epochs, 0, int64_t{1} << 32);
  check_at_least("steps", spec.steps, 0);
  check(spec.epochs == 0 || !spec.data.streamed, "epochs: streamed data has none; give steps, or end the stream");
  check(spec.epochs > 0 || spec.steps > 0 || spec.data.streamed, "epochs: needs epochs or steps");
  if (spec.batch_size == 0) spec.batch_size = 32;
  check_at_least("batch_size", spec.batch_size, 1, kMaxBatchSize);
  check_at_least("max_seconds", spec.max_seconds, 0, kMaxSeconds);
  check(spec.ema_decay >= 0 && spec.ema_decay < 1, "ema_decay: must be at least 0 and below 1, got ", spec.ema_decay);
  if (spec.accumulation == 0) spec.accumulation = 1;
  check_at_least("accumulation", spec.accumulation, 1, kMaxBatchSize);
  check(spec.accumulation == 1 || (!spec.data.streamed && !spec.distribution.is_wanted()),
        "accumulation: not with streamed data or a distribution");
}

void check_checkpoints(CheckpointSpec& spec) {
  check_at_least("checkpoints.every_steps", spec.every_steps, 0);
  check_at_least("checkpoints.every_seconds", spec.every_seconds, 0);
  check_at_least("checkpoints.keep", spec.keep, 0, 1000);
  if (spec.every_steps == 0 && spec.every_seconds == 0) spec.every_seconds = 60;
  if (spec.keep == 0) spec.keep = 2;
}

void check_hosts(DistributionSpec& spec) {
  if (!spec.has_several_hosts()) {
    check(spec.hosts.empty() && spec.join_timeout_seconds == 0 && spec.min_world_size == 0,
          !spec.hosts.empty()              ? "distribution.hosts"
          : spec.join_timeout_seconds != 0 ? "distribution.join_timeout_seconds"
                                           : "distribution.min_world_size",
          ": all ranks run on this host; give fewer processes_per_host");
    return;
  }
  if (spec.min_world_size == 0) spec.min_world_size = spec.world_size;
  check_at_least("distribution.min_world_size", spec.min_world_size, 1, spec.world_size);
  if (spec.join_timeout_seconds == 0) spec.join_timeout_seconds = 300;
  const int64_t others = (spec.world_size - 1) / spec.processes_per_host;
  check(spec.hosts.size() <= 1024, "distribution.hosts: more than 1024");
  check(spec.hosts.empty() || static_cast<int64_t>(spec.hosts.size()) >= others, "distribution.hosts: ", others,
        " other hosts are needed, got ", spec.hosts.size());
  std::set<std::string> names;
  for (const std::string& host : spec.hosts) {
    check_plain_name("distribution.hosts", host);
    check(!host.empty() && names.insert(host).second, "distribution.hosts: '", host, "' is empty or there twice");
  }
}

void check_compression(DistributionSpec& spec) {
  if (!spec.compression.empty()) check_one_of("distribution.compression", spec.compression, kCompressions);
  if (spec.compression != "powersgd") {
    check(spec.compression_rank == 0 && !spec.compression_start_step,
          spec.compression_rank != 0 ? "distribution.compression_rank" : "distribution.compression_start_step",
          ": is for powersgd alone");
    return;
  }
  if (spec.compression_rank == 0) spec.compression_rank = 1;
  if (!spec.compression_start_step) spec.compression_start_step = 1000;
  check_at_least("distribution.compression_rank", spec.compression_rank, 1, 1024);
  check_at_least("distribution.compression_start_step", *spec.compression_start_step, 2);
}

// A job's ranks are child processes of daemons, and their tensors are on the CPU.
void check_backend(DistributionSpec& spec) {
  if (spec.backend.empty()) spec.backend = "gloo";
  if (spec.backend == "mpi") {
    fail(ErrorCode::kUnimplemented,
         "distribution.backend: mpi wants ranks that mpirun has started, and a job's are started by its daemons; gloo "
         "is for jobs, mpi for programs of one's own");
  }
  if (spec.backend == "nccl") {
    fail(ErrorCode::kUnimplemented,
         "distribution.backend: nccl moves tensors of CUDA devices, and jobs train on the processor; gloo is for jobs, "
         "nccl for programs of one's own");
  }
  check(spec.backend == "gloo", "distribution.backend: '", spec.backend, "' is not gloo");
}

void check_job_device(const JobSpec& job) {
  try {
    if (device_of_job(job).is_host() || !job.distribution.is_wanted()) return;
  } catch (const Error& error) {
    throw Error(error.code(), concat("resources.device: ", error.what()));
  }
  fail(ErrorCode::kUnimplemented, "resources.device: ranks of a distribution train on the CPU, not on ",
       job.resources.device);
}

void check_distribution(const JobSpec& job, DistributionSpec& spec) {
  check_at_least("distribution.world_size", spec.world_size, 0, 1024);
  check_at_least("distribution.processes_per_host", spec.processes_per_host, 0, 1024);
  check_at_least("distribution.max_restarts", spec.max_restarts.value_or(0), 0, 1000);
  check_at_least("distribution.timeout_seconds", spec.timeout_seconds, 0, 24 * 3600);
  check_at_least("distribution.join_timeout_seconds", spec.join_timeout_seconds, 0, 24 * 3600);
  check_at_least("distribution.zero", spec.zero, 0, 1);
  check_at_least("distribution.min_world_size", spec.min_world_size, 0, 1024);
  check_compression(spec);
  if (!spec.is_wanted()) {
    check(spec.processes_per_host == 0 && !spec.max_restarts && spec.timeout_seconds == 0 &&
              spec.join_timeout_seconds == 0 && spec.hosts.empty() && !spec.sync_batch_norm && spec.zero == 0 &&
              spec.compression.empty() && spec.backend.empty() && spec.min_world_size == 0,
          "distribution.world_size: needed where there is a distribution");
    return;
  }
  if (!job.loss.class_weights.empty())
    fail(ErrorCode::kUnimplemented,
         "loss.class_weights: each rank would divide by the weights of its own rows, so not with a distribution");
  if (spec.timeout_seconds == 0) spec.timeout_seconds = 60;
  if (!spec.max_restarts) spec.max_restarts = 3;
  if (spec.processes_per_host == 0) spec.processes_per_host = spec.world_size;
  check(spec.processes_per_host <= spec.world_size, "distribution.processes_per_host: more than the ", spec.world_size,
        " ranks of distribution.world_size, got ", spec.processes_per_host);
  check_backend(spec);
  check_hosts(spec);
  if (optimizer_of(job.optimizer).needs_closure) {
    fail(ErrorCode::kUnimplemented, "distribution: ", job.optimizer.name, " trains in one process");
  }
  // Streamed batches may have any size.
  check(job.data.streamed || job.batch_size >= spec.world_size, "distribution.world_size: ", spec.world_size,
        " ranks have no row each of ", job.batch_size, " in a batch");
  // Averaging each rank's mean over its own non-ignored rows would not give the batch's mean.
  check(!job.loss.ignore_index || spec.world_size == 1,
        "loss.ignore_index: each rank would count its own rows; not with a distribution");
}

}  // namespace

void check_job_spec(JobSpec& spec) {
  check(spec.name.size() <= kMaxNameBytes, "name: longer than ", kMaxNameBytes, " bytes");
  check_model(spec.model);
  check_data(spec.data);
  check_loss(spec.loss);
  check_length(spec);
  check_tags(spec);
  check_optimizer(spec.optimizer, kMaxItems);
  check_number("clipping.norm", spec.clipping.norm, 0);
  check_number("clipping.value", spec.clipping.value, 0);
  check_evaluation(spec, spec.evaluation);
  check_schedule(spec, spec.schedule);
  if (spec.schedule.name == "plateau") check_is_evaluated("schedule.metric", spec.schedule.metric, spec.evaluation);
  check_checkpoints(spec.checkpoints);
  check_publish(spec, spec.publish);
  check_at_least("resources.threads", spec.resources.threads, 0, 1024);
  check_job_device(spec);
  check_precision(spec);
  check_activation_checkpointing(spec);
  check_distribution(spec, spec.distribution);
}

Device device_of_job(const JobSpec& spec) {
  return spec.resources.device.empty() ? Device{} : parse_device(spec.resources.device);
}

std::optional<DType> autocast_type_of_job(const JobSpec& spec) {
  if (spec.precision.empty()) return std::nullopt;
  return spec.precision == "16-mixed" ? DType::kFloat16 : DType::kBFloat16;
}

std::string loss_names() { return join(kLosses); }
std::string schedule_names() { return join(kSchedules); }
std::string metric_names() { return join(kMetrics) + ", top_N_accuracy, metric_NAME (a method of the script)"; }
std::string publish_times() { return join(kPublishTimes); }
std::string precision_names() { return join(kPrecisions); }
std::string compression_names() { return join(kCompressions); }

bool is_more_better(const std::string& metric) {
  if (EvaluationMetrics::is_own(metric)) return !metric.ends_with("_loss") && !metric.ends_with("_error");
  return metric.ends_with("accuracy") || is_one_of(metric, kMoreIsBetter);
}

int64_t top_n_of(const std::string& metric) {
  constexpr std::string_view kBefore = "top_", kAfter = "_accuracy";
  std::string_view number = metric;
  if (!number.starts_with(kBefore)) return 0;
  number.remove_prefix(kBefore.size());
  if (!number.ends_with(kAfter)) return 0;
  number.remove_suffix(kAfter.size());
  int64_t n = 0;
  const auto [at, error] = std::from_chars(number.begin(), number.end(), n);
  return error == std::errc() && at == number.end() && n > 0 && n <= 1000 ? n : 0;
}

bool matches_pattern(const std::string& name, const std::string& pattern) {
  // On a mismatch, the last * is retried one character later.
  size_t n = 0, p = 0, star = std::string::npos, star_at = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n]) && pattern[p] != '*') {
      ++n, ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_at = n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++star_at;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tensord::server
