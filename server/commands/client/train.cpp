#include <tensord/client/training.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/job_view.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/optimizer_options.h"
#include "server/commands/client/packed_folder.h"
#include "server/commands/client/table.h"
#include "server/commands/commands.h"
#include "server/fetch/checksum.h"
#include "server/training/jobs/job_json.h"
#include "server/transport/calls/training_messages.h"

namespace tensord::server {
namespace {

constexpr uint64_t kMaxSpecBytes = 16 << 20;

struct TrainOptions {
  ConnectionOptions connection;
  std::string spec_file;
  std::string archive;
  std::string data, evaluation_data;  // files to upload
  bool detach = false;
  bool attach = false;
  bool lists_optimizers = false;
  JobSpec spec;
  std::vector<std::string> inputs;            // argument=array
  std::vector<std::string> frozen;            // name patterns
  std::vector<std::string> tags;              // name=value
  std::vector<std::string> image_parameters;  // name=value
};

JobSpec read_spec(const std::string& path) {
  const nlohmann::json json =
      nlohmann::json::parse(read_file(path, kMaxSpecBytes), nullptr, /*allow_exceptions=*/false);
  check(!json.is_discarded(), path, ": is not JSON");
  return job_spec_from_json(json);
}

// Flags override the file.
JobSpec merged(const TrainOptions& options) {
  JobSpec spec;
  if (!options.spec_file.empty()) {
    nlohmann::json json = to_json(read_spec(options.spec_file));
    json.merge_patch(to_json(options.spec));
    spec = job_spec_from_json(json);
  } else {
    spec = options.spec;
  }
  for (const auto& [argument, array] : pairs(options.inputs, "--input", "ARGUMENT=ARRAY")) {
    spec.data.inputs[argument] = array;
  }
  for (const auto& [name, value] : pairs(options.image_parameters, "--image-parameter", "NAME=VALUE")) {
    spec.data.image_parameters[name] = value;
  }
  for (const auto& [name, value] : pairs(options.tags, "--tag", "NAME=VALUE")) spec.tags[name] = value;
  for (const std::string& pattern : options.frozen) {
    spec.optimizer.groups.push_back({.pattern = pattern, .freeze = true});
  }
  return spec;
}

// Uploads a file or folder of data, unless none is given. Returns its name for the job.
std::string upload_data(client::TrainingClient& training, const std::string& given,
                        const client::TrainingClient::OnUpload& on_upload) {
  if (given.empty()) return {};
  const PackedFolder packed(given);
  const std::string& path = packed.file();
  const client::TrainingClient::UploadedData uploaded = training.upload_data(path, {}, on_upload);
  if (uploaded.sha256 != checksums_of(path).sha256) {
    fail(ErrorCode::kDataLoss, path, ": another file arrived at the server, or it changed meanwhile");
  }
  return uploaded.file;
}

JobStatus create_job(client::TrainingClient& training, JobSpec spec, const TrainOptions& options) {
  ProgressLine line(!options.connection.json);
  const auto show = [&](uint64_t sent, uint64_t size) {
    line.show(concat("upload ", bar_text(static_cast<double>(sent) / static_cast<double>(size)), " ",
                     bytes_text(static_cast<double>(sent))));
  };
  if (!options.archive.empty()) spec.model.upload_id = training.upload(options.archive, {}, show);
  if (!options.data.empty()) spec.data.file = upload_data(training, options.data, show);
  if (!options.evaluation_data.empty()) spec.evaluation.file = upload_data(training, options.evaluation_data, show);
  client::TrainingClient::JobSpec message;
  to_message(spec, message);
  return to_job_status(training.create(message));
}

// The fields in which two jobs differ, as "epochs (2 there, 3 here)"; empty if they are equal.
std::string differences(const JobSpec& there, const JobSpec& here) {
  const nlohmann::json of_job = to_json(there).flatten(), given = to_json(here).flatten();
  nlohmann::json all = of_job;
  all.update(given);
  std::string out;
  for (const auto& [path, value] : all.items()) {
    const auto text_in = [&path = path](const nlohmann::json& fields) {
      const auto found = fields.find(path);
      return found == fields.end() ? std::string("none")
                                   : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    const std::string left = text_in(of_job), right = text_in(given);
    if (left == right) continue;
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    out += concat(out.empty() ? "" : ", ", name, " (", left, " there, ", right, " here)");
  }
  return out;
}

// A rerun of the command with changed flags must not return the old job's result.
void check_same_job(const JobStatus& job, JobSpec given, const TrainOptions& options) {
  // Fields that the server fills in when it creates the job.
  if (!options.archive.empty()) given.model.upload_id = job.spec.model.upload_id;
  if (!options.data.empty() && is_upload(job.spec.data.file)) given.data.file = job.spec.data.file;
  if (!options.evaluation_data.empty() && is_upload(job.spec.evaluation.file)) {
    given.evaluation.file = job.spec.evaluation.file;
  }
  check_job_spec(given);
  given.data.image_parameters.insert(job.spec.data.image_parameters.begin(), job.spec.data.image_parameters.end());
  if (given.model.version == 0) given.model.version = job.spec.model.version;
  if (given.resources.threads == 0) given.resources.threads = job.spec.resources.threads;
  if (given.resources.memory_bytes == 0) given.resources.memory_bytes = job.spec.resources.memory_bytes;
  const std::string differing = differences(job.spec, given);
  check(differing.empty(), "--attach: job '", job.id, "' of this --name is another one: ", differing,
        ". Give the same, or another --name; `tensord jobs show ", job.id, "` shows its state");
}

// The newest job of this name, in any state; otherwise a new job.
JobStatus attach_or_create_job(client::TrainingClient& training, const JobSpec& spec, const TrainOptions& options) {
  check(!spec.name.empty(), "--attach: needs --name");
  const std::vector<client::TrainingClient::Job> jobs = training.list();
  const auto found =
      std::find_if(jobs.rbegin(), jobs.rend(), [&](const auto& job) { return job.spec().name() == spec.name; });
  if (found == jobs.rend()) return create_job(training, spec, options);
  JobStatus job = to_job_status(*found);
  check_same_job(job, spec, options);
  return job;
}

int train(const TrainOptions& options) {
  if (options.lists_optimizers) {
    print_optimizers(options.connection.json);
    return 0;
  }
  client::TrainingClient training = connect(options.connection).training();
  const JobSpec spec = merged(options);
  const JobStatus job =
      options.attach ? attach_or_create_job(training, spec, options) : create_job(training, spec, options);
  const bool json = options.connection.json;
  if (options.detach) {
    if (json) {
      print_json_line(to_json(job));
    } else {
      std::cout << printable(job.id) << "\n";
    }
    return 0;
  }
  if (!json) std::cout << "job " << printable(job.id) << std::endl;
  return watch_job(training, job.id, json).state == JobState::kCompleted ? 0 : kExitFailed;
}

void add_data_options(CLI::App& command, TrainOptions& options) {
  JobSpec& spec = options.spec;
  command.add_option("model", spec.model.name, "The served model to start from; with --upload, what to publish as");
  command.add_option("--version", spec.model.version, "Version of the model; default the served one");
  command.add_option("--upload", options.archive, "Start from this model file instead: TorchScript, .pt2 or .onnx");
  command.add_option("--spec", options.spec_file, "The job as JSON; flags override it");
  command.add_option("--name", spec.name, "A readable name, which commands take in place of the id");
  command.add_option("--tag", options.tags, "NAME=VALUE: a tag of the job; may be repeated")->allow_extra_args(false);
  CLI::Option* data =
      command.add_option("--data", spec.data.file,
                         "File in the server's data folder: .npz, .safetensors, .pt, .csv; or images: a folder with a "
                         "folder for each class, or a .zip of it");
  command
      .add_option("--upload-data", options.data,
                  "A file of this machine instead, or a folder of images, which is uploaded for the job")
      ->excludes(data);
  command.add_flag("--streamed", spec.data.streamed, "A client streams the data");
  command
      .add_option("--input", options.inputs,
                  "ARGUMENT=ARRAY: the array for an argument, or columns side by side (x=age,height); may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--image-parameter", options.image_parameters,
                  "NAME=VALUE: how images become the input, such as image_crop_size=224; default: as config.pbtxt "
                  "says; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--random-resized-crop", spec.data.random_resized_crop,
                     "Train on random parts of the images, of at least this share of their area, such as 0.08");
  command.add_option("--random-horizontal-flip", spec.data.random_horizontal_flip,
                     "Probability with which an image is mirrored in training, such as 0.5");
  command.add_option("--label", spec.loss.label, "The array with the labels");
  command.add_option("--loss", spec.loss.builtin, loss_names());
  command.add_option("--class-weights", spec.loss.class_weights, "Of cross_entropy and nll: the weight of each class")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--loss-method", spec.loss.method, "Method of the script that returns the loss, instead");
  command.add_option("--epochs", spec.epochs, "Passes over the data");
  command.add_option("--steps", spec.steps, "Updates of the weights");
  command.add_option("--batch-size", spec.batch_size, "Rows of a batch; default 32");
  command.add_option("--accumulation", spec.accumulation, "Batches whose gradients make one step; default 1");
  command.add_option(
      "--loss-scale", spec.loss_scale,
      "Multiply the loss, so that small gradients do not vanish in float16, such as 65536; adjusted later");
  command.add_option("--precision", spec.precision, precision_names() + ": types in which the loss is computed");
  command
      .add_option("--activation-checkpointing", spec.activation_checkpointing,
                  "Modules whose activations are computed again in the backward pass: name patterns, or auto")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--deterministic", spec.deterministic, "On a GPU: the same bits each time");
  command.add_option("--max-seconds", spec.max_seconds, "End the training after this time, and publish as configured");
  command.add_option("--seed", spec.seed, "Seed of all random numbers");
}

void add_training_options(CLI::App& command, TrainOptions& options) {
  JobSpec& spec = options.spec;
  add_optimizer_options(command, spec.optimizer);
  command.add_option("--freeze", options.frozen, "Parameters that are not trained, such as layer1.*; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--schedule", spec.schedule.name, schedule_names() + "; default: constant");
  command.add_option("--warmup-steps", spec.schedule.warmup_steps, "Steps in which the learning rate rises");
  command.add_option("--clip-norm", spec.clipping.norm, "Largest norm of all gradients together");
  command.add_option("--eval-fraction", spec.evaluation.fraction, "Fraction of the rows used for evaluation");
  CLI::Option* evaluation = command.add_option("--eval-data", spec.evaluation.file, "File used for evaluation");
  command
      .add_option("--upload-eval-data", options.evaluation_data, "A file of this machine for it, with --upload-data")
      ->excludes(evaluation);
  command.add_option("--metrics", spec.evaluation.metrics, metric_names())->delimiter(',')->allow_extra_args(false);
  command.add_option("--patience", spec.evaluation.patience,
                     "End the training after this many evaluations without a better --metric");
  command.add_option("--ema-decay", spec.ema_decay,
                     "Decay of a moving average of the weights, which is evaluated and published, such as 0.999");
  command.add_option("--publish", spec.publish.when, publish_times());
  command.add_option("--publish-as", spec.publish.model, "Model that gets the new version; default the same");
  command.add_option("--metric", spec.publish.metric, "The metric for best, and for the bar");
  command.add_option("--bar", spec.publish.bar, "The value that the metric must reach for publishing");
  command.add_option("--threads", spec.resources.threads, "Threads of the job");
  command.add_option("--device", spec.resources.device, "Device of the job, such as cuda:0; default the CPU");
  command.add_option("--world-size", spec.distribution.world_size, "Number of processes; 0: the server itself trains");
  command.add_option("--procs-per-host", spec.distribution.processes_per_host,
                     "Processes on each host: the others run on hosts that joined the server; default all");
  command.add_option("--hosts", spec.distribution.hosts, "Names of allowed hosts; default all")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--sync-batch-norm", spec.distribution.sync_batch_norm,
                   "Batch norms use the rows of all processes, not only of each process");
  command.add_option("--zero", spec.distribution.zero,
                     "1: each process keeps the optimizer's state of its share of the parameters");
  command.add_option("--compression", spec.distribution.compression,
                     "Compression of gradients: " + compression_names() + "; default none");
  command.add_option("--compression-rank", spec.distribution.compression_rank,
                     "Of powersgd: columns of the low-rank factors; default 1");
  command.add_option("--compression-start-step", spec.distribution.compression_start_step,
                     "Of powersgd: earlier steps are not compressed; default 1000");
  command.add_option("--min-world-size", spec.distribution.min_world_size,
                     "Start with as few as this many processes if hosts are missing; default all");
  command.add_option("--backend", spec.distribution.backend, "The communication backend: gloo");
  command.add_option("--max-restarts", spec.distribution.max_restarts,
                     "How often all processes are restarted after one was lost; default 3");
}

}  // namespace

void add_train_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model of a running tensord, and watch the job");
  add_client_options(*command, options->connection);
  command->add_flag("--detach", options->detach, "Print the job's id and leave it running");
  command->add_flag("--attach", options->attach,
                    "Watch the job of this --name if it exists, whatever its state, and refuse if its settings differ; "
                    "so the command can be repeated");
  add_data_options(*command, *options);
  add_training_options(*command, *options);
  command->add_flag("--list-optimizers", options->lists_optimizers, "Print the optimizers and their options, and exit");
  command->footer(
      "Examples:\n"
      "  tensord train digits --data digits.npz --label labels --loss cross_entropy --epochs 15\n"
      "  tensord train digits --spec job.json --lr 1e-3 --publish best --metric accuracy --bar 0.97\n"
      "  tensord train --upload new.pt --data line.npz --loss-method loss --steps 300 --detach");
  on_run(*command, exit_code, [=] { return train(*options); });
}

}  // namespace tensord::server
