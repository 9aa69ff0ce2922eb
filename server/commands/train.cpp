#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/commands/commands.h"
#include "server/commands/job_view.h"
#include "server/training/job_json.h"
#include "server/transport/training_client.h"

namespace tensord::server {
namespace {

struct TrainOptions {
  std::string address = "127.0.0.1:8001";
  std::string spec_file;
  std::string archive;
  bool json = false;
  bool detach = false;
  bool attach = false;
  JobSpec spec;
  std::vector<std::string> inputs;  // argument=array
  std::vector<std::string> frozen;  // patterns
};

JobSpec read_spec(const std::string& path) {
  std::ifstream in(path);
  if (!in) fail(ErrorCode::kNotFound, path, ": cannot be read");
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  check(!json.is_discarded(), path, ": is not JSON");
  return job_spec_from_json(json);
}

// What flags say goes over the file.
JobSpec merged(const TrainOptions& options) {
  JobSpec spec;
  if (!options.spec_file.empty()) {
    nlohmann::json json = to_json(read_spec(options.spec_file));
    json.merge_patch(to_json(options.spec));
    spec = job_spec_from_json(json);
  } else {
    spec = options.spec;
  }
  for (const std::string& input : options.inputs) {
    const size_t mark = input.find('=');
    check(mark != std::string::npos && mark > 0, "--input: '", input, "' is not ARGUMENT=ARRAY");
    spec.data.inputs[input.substr(0, mark)] = input.substr(mark + 1);
  }
  for (const std::string& pattern : options.frozen) {
    spec.optimizer.groups.push_back({.pattern = pattern, .freeze = true, .lr = {}, .weight_decay = {}, .momentum = {}});
  }
  return spec;
}

JobStatus create_job(TrainingClient& client, JobSpec spec, const TrainOptions& options) {
  if (!options.archive.empty()) spec.model.upload_id = client.upload(options.archive);
  return client.create(spec);
}

// The newest job of the name, whatever became of it, else a new one.
JobStatus attach_or_create_job(TrainingClient& client, const JobSpec& spec, const TrainOptions& options) {
  check(!spec.name.empty(), "--attach: needs --name");
  const std::vector<JobStatus> jobs = client.list(/*model=*/"");
  const auto found =
      std::find_if(jobs.rbegin(), jobs.rend(), [&](const JobStatus& job) { return job.spec.name == spec.name; });
  return found != jobs.rend() ? *found : create_job(client, spec, options);
}

int train(const TrainOptions& options) {
  TrainingClient client(options.address);
  const JobSpec spec = merged(options);
  const JobStatus job =
      options.attach ? attach_or_create_job(client, spec, options) : create_job(client, spec, options);
  if (options.detach) {
    std::cout << (options.json ? to_json(job).dump() : job.id) << "\n";
    return 0;
  }
  if (!options.json) std::cout << "job " << job.id << std::endl;
  JobView view(options.json);
  client.watch(job.id, [&](const JobStatus& status, const std::vector<CurvePoint>& points) {
    view.show(status, points);
    return true;
  });
  view.finish();
  return view.status().state == JobState::kCompleted ? 0 : 1;
}

void add_data_options(CLI::App& command, TrainOptions& options) {
  JobSpec& spec = options.spec;
  command.add_option("model", spec.model.name, "The served model to start from; with --upload, what to publish as");
  command.add_option("--version", spec.model.version, "Version of the model; default the served one");
  command.add_option("--upload", options.archive, "Start from this archive instead");
  command.add_option("--spec", options.spec_file, "The job as JSON; flags go over it");
  command.add_option("--name", spec.name, "A name for people");
  command.add_option("--data", spec.data.file, "File of the server's data folder: .npz, .safetensors, .pt, .csv");
  command.add_flag("--streamed", spec.data.streamed, "A client streams the data");
  command.add_option("--input", options.inputs, "ARGUMENT=ARRAY: the array that an argument takes; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--label", spec.loss.label, "The array that the output is compared with");
  command.add_option("--loss", spec.loss.builtin, "cross_entropy, mse, l1, smooth_l1, huber, bce_with_logits, nll …");
  command.add_option("--loss-method", spec.loss.method, "Method of the script that gives the loss, instead");
  command.add_option("--epochs", spec.epochs, "Passes over the data");
  command.add_option("--steps", spec.steps, "Updates of the weights");
  command.add_option("--batch-size", spec.batch_size, "Rows of a batch; default 32");
  command.add_option("--seed", spec.seed, "Of every random number");
}

void add_training_options(CLI::App& command, TrainOptions& options) {
  JobSpec& spec = options.spec;
  command.add_option("--optimizer", spec.optimizer.name, "sgd, adam, adamw, rmsprop, adagrad, lbfgs; default adamw");
  command.add_option("--lr", spec.optimizer.lr, "Learning rate; default PyTorch's");
  command.add_option("--momentum", spec.optimizer.momentum, "Of sgd and rmsprop");
  command.add_option("--weight-decay", spec.optimizer.weight_decay, "Default the optimiser's");
  command.add_option("--freeze", options.frozen, "Parameters that are not trained, as layer1.*; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--schedule", spec.schedule.name,
                     "step, multi_step, exponential, cosine, one_cycle, linear, plateau");
  command.add_option("--warmup-steps", spec.schedule.warmup_steps, "Steps in which the learning rate rises");
  command.add_option("--clip-norm", spec.clipping.norm, "Largest norm of all gradients together");
  command.add_option("--eval-fraction", spec.evaluation.fraction, "Part of the rows that is evaluated with");
  command.add_option("--eval-data", spec.evaluation.file, "File that is evaluated with");
  command.add_option("--metrics", spec.evaluation.metrics, "loss, accuracy, top_5_accuracy, mae, mse, rmse")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--publish", spec.publish.when, "never, at_end, best");
  command.add_option("--publish-as", spec.publish.model, "Model that gets the new version; default the same");
  command.add_option("--metric", spec.publish.metric, "What is best, and what the bar is for");
  command.add_option("--bar", spec.publish.bar, "What the metric must reach, or the old version stays");
  command.add_option("--threads", spec.resources.threads, "Threads of the job");
}

}  // namespace

void add_train_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model of a running daemon, and watch");
  command->add_option("--address", options->address, "Where the daemon listens for gRPC")->capture_default_str();
  command->add_flag("--json", options->json, "JSON instead of text, one object a line");
  command->add_flag("--detach", options->detach, "Print the job's id and leave it running");
  command->add_flag(
      "--attach", options->attach,
      "Watch the job of this --name if there is one, whatever its state; so this may be run again and again");
  add_data_options(*command, *options);
  add_training_options(*command, *options);
  command->callback([=] { *exit_code = train(*options); });
}

}  // namespace tensord::server
