// How a job is created: everything that can be found wrong with it is found here, not when its turn comes.
#include <algorithm>
#include <filesystem>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/jit/importers/new_weights.h"
#include "core/tensor/device_runtime.h"
#include "server/training/data/data_file.h"
#include "server/training/data/image_data.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/learning_rate.h"
#include "server/training/training_service.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUploadLifeSeconds = 24 * 3600;
// Time limit for model code that runs while a job is created.
constexpr int64_t kMaxLoadNs = 120'000'000'000;

}  // namespace

Repository::Source TrainingService::source_of(const ModelSource& model, const std::string& owner) const {
  if (model.upload_id.empty()) return repository_.source_of(model.name, model.version);
  const fs::path file = store_.upload_file(owner, model.upload_id);
  if (!fs::is_regular_file(fs::symlink_status(file)))
    fail(ErrorCode::kNotFound, "model.upload_id: there is no upload '", model.upload_id, "'");
  return {file, 0};
}

void TrainingService::check_data(const char* field, const std::string& path, const JobSpec& spec,
                                 const TrainingModel& model) const {
  if (path.empty()) return;
  try {
    if (is_image_data(path))
      check_image_data(path, options_.data_folder, spec, model);
    else
      check_data_names(path, model.arrays());
  } catch (const Error& error) {
    // A file of the data folder, or an upload.
    const std::string text = without_folder(error.what(), options_.data_folder);
    throw Error(error.code(), concat(field, ": ", without_folder(text, fs::path(path).parent_path().string())));
  }
}

// A job trains on images as the model is served with, unless it says otherwise.
void TrainingService::add_image_parameters(JobSpec& spec, const DataPaths& paths) const {
  if (!is_image_data(paths.training) && !is_image_data(paths.evaluation)) {
    check(!spec.data.has_image_options(),
          "data.image_parameters, random_resized_crop, random_horizontal_flip: are for folders and archives of images");
    return;
  }
  if (!spec.model.upload_id.empty()) return;
  for (const auto& [key, value] : repository_.config_of(spec.model.name).parameters) {
    if (key.starts_with("image_") && key != "image_input") spec.data.image_parameters.emplace(key, value);
  }
}

// Finds errors when the job is created, not when its turn comes.
void TrainingService::check_against_model(const JobSpec& spec, const std::string& archive,
                                          const DataPaths& paths) const {
  const CancellationScope scope([this] { return is_stopping_.load(); }, Clock::system().now_ns() + kMaxLoadNs);
  try {
    device_runtime(device_of_job(spec));
  } catch (const Error& error) {
    throw Error(error.code(), concat("resources.device: ", error.what()));
  }
  TrainingModel model = [&] {
    try {
      return TrainingModel(archive, spec.loss, spec.data.inputs,
                           EvaluationMetrics::needs_output(spec.evaluation.metrics), {}, device_of_job(spec));
    } catch (const Error& error) {
      if (spec.model.upload_id.empty()) throw;
      throw Error(error.code(), without_folder(error.what(), fs::path(archive).parent_path().string()));
    }
  }();
  model.use_metrics(spec.evaluation.metrics);
  model.checkpoint_activations(spec.activation_checkpointing);
  check_data("data.file", paths.training, spec, model);
  check_data("evaluation.file", paths.evaluation, spec, model);
  model.module().check_can_save();
  make_job_optimizer(spec.optimizer, model.module().named_parameters());
}

void TrainingService::keep_base(const fs::path& model, const fs::path& base) {
  link_or_copy(model, base);
  const fs::path weights = jit::weights_beside(model.string());
  if (!weights.empty()) link_or_copy(weights, base.parent_path() / ("weights" + weights.extension().string()));
  if (base.extension() != ".onnx") return;
  try {
    jit::Module::load(base.string());
  } catch (const Error&) {
    // A model with external data files is saved again as one file.
    jit::LoadOptions options;
    options.for_training = true;
    jit::Module::load(model.string(), options)->save(base.string());
  }
}

void TrainingService::check_room_for_job() const {
  const MutexLock lock(mutex_);
  if (is_stopped_) fail(ErrorCode::kUnavailable, "the server is shutting down");
  if (jobs_.size() >= options_.max_jobs) {
    fail(ErrorCode::kResourceExhausted, "there are ", jobs_.size(), " jobs already; delete some");
  }
}

int TrainingService::threads_of(const JobSpec& spec) const {
  if (spec.resources.threads > 0) return static_cast<int>(spec.resources.threads);
  return options_.threads > 0 ? options_.threads : std::max(1, available_cores() / 2);
}

int64_t TrainingService::max_processes() { return std::max(4, 2 * available_cores()); }

void TrainingService::check_ranks(const JobSpec& spec) const {
  const int64_t max = max_processes();
  check(spec.distribution.processes_per_host <= max,
        spec.distribution.has_several_hosts() ? "distribution.processes_per_host" : "distribution.world_size",
        ": this server starts at most ", max, " processes for a job, got ", spec.distribution.processes_per_host);
  if (spec.distribution.world_size > 1 && !distributed::has_gloo()) {
    fail(ErrorCode::kUnimplemented,
         "distribution.world_size: several ranks need Gloo, which this build does not have: set TENSORD_GLOO to the "
         "path of "
         "libtensord_gloo.so, which scripts/build makes where libgloo-dev is installed");
  }
}

JobStatus TrainingService::create(JobSpec spec, const std::string& owner) {
  check_job_spec(spec);
  check_room_for_job();
  spec.resources.threads = threads_of(spec);
  if (options_.memory_bytes > 0) {
    if (spec.resources.memory_bytes == 0) spec.resources.memory_bytes = options_.memory_bytes;
    check(spec.resources.memory_bytes <= options_.memory_bytes, "resources.memory_bytes: the server allows ",
          options_.memory_bytes);
  }
  check_ranks(spec);
  const Repository::Source source = source_of(spec.model, owner);
  const DataPaths paths = data_paths(spec, owner);
  add_image_parameters(spec, paths);
  check_against_model(spec, source.file.string(), paths);
  if (spec.model.upload_id.empty()) spec.model.version = source.version;
  // The slow part is done outside the lock, so that concurrent creations do not wait for each other.
  const MutexLock create_lock(create_mutex_);
  store_.remove_uploads(kUploadLifeSeconds);
  check_room_for_job();
  JobStatus status;
  status.id = store_.make_job(!spec.name.empty() ? spec.name : spec.publish.model);
  status.spec = std::move(spec);
  status.created_at_ms = status.updated_at_ms = now_ms();
  status.base_version = source.version;
  status.progress.total_steps = status.spec.steps;
  // From here on the job has its own copy of the model.
  try {
    const bool is_upload = !status.spec.model.upload_id.empty();  // whose file has no extension
    const fs::path file_name = is_upload ? fs::path(format_file_name(source.file)) : source.file;
    keep_base(source.file, store_.new_base_archive(status.id, file_name));
    keep_data(status, paths);
    store_.save(status);
  } catch (...) {
    store_.remove(status.id);
    throw;
  }
  log(LogLevel::kInfo, "training job created",
      {{"job", status.id}, {"model", status.spec.model.name}, {"version", std::to_string(status.base_version)}});
  const auto job = std::make_shared<TrainingJob>(std::move(status));
  add_job(job);
  enqueue(job);
  return job->status();
}

}  // namespace tensord::server
