#include <fcntl.h>
#include <sys/file.h>
#include <tensord/client/training.h>

#include <CLI/CLI.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/job_export.h"
#include "server/commands/client/job_view.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/table.h"
#include "server/commands/commands.h"
#include "server/fetch/checksum.h"
#include "server/training/jobs/job_json.h"
#include "server/transport/calls/training_messages.h"

namespace tensord::server {
namespace {

using client::TrainingClient;

constexpr int kCurveWidth = 60, kCurveHeight = 8;

struct JobsOptions {
  ConnectionOptions connection;
  std::string id;
  std::string model;
  std::vector<std::string> tags;  // name=value
  std::vector<std::string> ids;   // of export and plot
  std::string csv, tensorboard, mlflow;
  std::string metric = "loss";
  std::string folder;  // of download
  int world_size = 0;
};

TrainingClient training(const JobsOptions& options) { return connect(options.connection).training(); }

void print(const TrainingClient::Job& job, const JobsOptions& options) {
  const JobStatus status = to_job_status(job);
  if (options.connection.json) return print_json_line(to_json(status));
  std::cout << job_line(status) << "\n";
}

void list(const JobsOptions& options) {
  const std::map<std::string, std::string> tags = pairs(options.tags, "--tag", "NAME=VALUE");
  std::vector<JobStatus> jobs;
  for (const TrainingClient::Job& job : training(options).list(options.model, tags)) jobs.push_back(to_job_status(job));
  if (options.connection.json) {
    for (const JobStatus& job : jobs) print_json_line(to_json(job));
  } else if (jobs.empty()) {
    std::cout << "no jobs\n";
  } else {
    print_jobs(std::cout, jobs);
  }
}

int watch(const JobsOptions& options) {
  TrainingClient client = training(options);
  const JobStatus status = watch_job(client, options.id, options.connection.json, call_options(options.connection));
  return status.state == JobState::kFailed ? kExitFailed : 0;
}

void show(const JobsOptions& options) {
  const JobStatus status = to_job_status(training(options).get(options.id));
  if (options.connection.json) return print_json_line(to_json(status));
  std::cout << job_report(status);
}

struct Curves {
  std::vector<JobStatus> jobs;
  std::vector<std::vector<CurvePoint>> points;
};

Curves curves(const JobsOptions& options) {
  TrainingClient client = training(options);
  Curves out;
  for (const std::string& id : options.ids) {
    const auto take = [&](const auto& job, const auto& points) {
      out.jobs.push_back(to_job_status(job));
      auto& kept = out.points.emplace_back();
      for (const auto& point : points) kept.push_back(to_curve_point(point));
      return false;
    };
    client.watch(id, take);
  }
  return out;
}

void export_jobs(const JobsOptions& options) {
  check(!options.csv.empty() || !options.tensorboard.empty() || !options.mlflow.empty(),
        "export: needs --csv FILE, --tensorboard FOLDER or --mlflow FOLDER");
  const auto [jobs, points] = curves(options);
  if (options.csv == "-") {
    write_csv(std::cout, jobs, points);
  } else if (!options.csv.empty()) {
    std::ofstream out(options.csv, std::ios::trunc);
    write_csv(out, jobs, points);
    if (!out.flush()) fail(ErrorCode::kUnavailable, options.csv, ": cannot be written");
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!options.tensorboard.empty()) write_tensorboard(options.tensorboard, jobs[i], points[i]);
    if (!options.mlflow.empty()) write_mlflow(options.mlflow, jobs[i], points[i]);
  }
}

void plot_jobs(const JobsOptions& options) {
  const auto [jobs, points] = curves(options);
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> values;
    for (const CurvePoint& point : points[i]) {
      const auto found = point.metrics.find(options.metric);
      if (options.metric == "loss") {
        values.push_back(point.loss);
      } else if (options.metric == "learning_rate") {
        values.push_back(point.learning_rate);
      } else if (found != point.metrics.end()) {
        values.push_back(found->second);
      }
    }
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    std::cout << printable(jobs[i].id) << "  " << printable(options.metric) << "\n"
              << (values.empty() ? "no values\n" : plot(values, kCurveWidth, kCurveHeight));
  }
}

void hosts(const JobsOptions& options) {
  const std::vector<TrainingClient::Host> all = training(options).hosts();
  if (options.connection.json) {
    for (const TrainingClient::Host& host : all) {
      print_json_line(nlohmann::json{{"name", host.name()},
                                     {"address", host.address()},
                                     {"processes", host.processes()},
                                     {"is_busy", host.is_busy()}});
    }
    return;
  }
  if (all.empty()) {
    std::cout << "no hosts have joined\n";
    return;
  }
  Table table({"HOST", "ADDRESS", "PROCESSES", "STATE"});
  for (const TrainingClient::Host& host : all) {
    table.add({host.name(), host.address(), std::to_string(host.processes()), host.is_busy() ? "busy" : "free"});
  }
  table.print(std::cout);
}

void roll_back(const JobsOptions& options) {
  const auto [withdrawn, served] = training(options).roll_back(options.model);
  if (options.connection.json) {
    print_json_line(nlohmann::json{{"withdrawn_version", withdrawn}, {"served_version", served}});
  } else {
    std::cout << options.model << ": version " << withdrawn << " withdrawn, version " << served << " is served\n";
  }
}

// The folder appears when all files are there and right.
int download(const JobsOptions& options) {
  namespace fs = std::filesystem;
  const fs::path target = fs::absolute(options.folder.empty() ? options.id : options.folder).lexically_normal();
  check(target.has_filename(), options.folder, ": expected the folder to make, without a slash at its end");
  if (fs::exists(fs::symlink_status(target))) fail(ErrorCode::kAlreadyExists, target.string(), ": is there already");
  const fs::path folder = target.parent_path() / concat(".", target.filename().string(), ".download");
  std::error_code error;
  fs::create_directory(folder, error);
  const FileDescriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (lock.get() < 0) fail_file(folder.string(), "made", errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    fail(ErrorCode::kFailedPrecondition, target.string(), ": another download to this folder is under way");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  try {
    for (const TrainingClient::DownloadedFile& file : training(options).download(options.id, folder.string())) {
      const std::string path = folder / file.name;
      const bool is_right = fs::file_size(path) == file.size_bytes && checksums_of(path).sha256 == file.sha256;
      if (!is_right) fail(ErrorCode::kDataLoss, file.name, ": another file arrived than the server sent");
      if (!options.connection.json) std::cout << printable(file.name) << "  " << file.size_bytes << " bytes\n";
    }
    fs::rename(folder, target);
  } catch (...) {
    fs::remove_all(folder, error);
    throw;
  }
  if (options.connection.json) print_json_line(nlohmann::json{{"folder", target.string()}});
  return 0;
}

using Act = TrainingClient::Job (TrainingClient::*)(const std::string& id, const client::CallOptions& options);

// Makes a handler that performs an action on a job and prints the job's new status.
std::function<int(const JobsOptions&)> acting(Act act) {
  return [act](const JobsOptions& options) {
    TrainingClient client = training(options);
    print((client.*act)(options.id, {}), options);
    return 0;
  };
}

int resume(const JobsOptions& options) {
  TrainingClient client = training(options);
  print(options.world_size > 0 ? client.resume_with(options.id, options.world_size) : client.resume(options.id),
        options);
  return 0;
}

}  // namespace

void add_jobs_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<JobsOptions>();
  CLI::App* command = app.add_subcommand("jobs", "Training jobs of a running tensord");
  command->require_subcommand(1);
  command->fallthrough();
  add_client_options(*command, options->connection);
  CLI::App* of_list = command->add_subcommand("list", "All jobs, oldest first");
  of_list->add_option("--model", options->model, "Only jobs of this model");
  of_list->add_option("--tag", options->tags, "NAME=VALUE: only jobs with this tag; may be repeated")
      ->allow_extra_args(false);
  on_run(*of_list, exit_code, [=] { return list(*options), 0; });
  CLI::App* of_hosts = command->add_subcommand("hosts", "The daemons that joined this one, for multi-host jobs");
  on_run(*of_hosts, exit_code, [=] { return hosts(*options), 0; });
  CLI::App* of_rollback = command->add_subcommand("rollback", "Serve a model's previous version again");
  of_rollback->add_option("model", options->model, "The model")->required();
  on_run(*of_rollback, exit_code, [=] { return roll_back(*options), 0; });

  CLI::App* of_export = command->add_subcommand("export", "Write the curves of jobs for other tools");
  of_export->add_option("ids", options->ids, "The jobs")->required();
  of_export->add_option("--csv", options->csv, "A file of one row a point; - for the standard output");
  of_export->add_option("--tensorboard", options->tensorboard, "A folder that TensorBoard opens (--logdir)");
  of_export->add_option("--mlflow", options->mlflow, "A tracking folder of MLflow (--backend-store-uri)");
  on_run(*of_export, exit_code, [=] { return export_jobs(*options), 0; });
  CLI::App* of_plot = command->add_subcommand("plot", "Draw a curve of each job on the terminal");
  of_plot->add_option("ids", options->ids, "The jobs")->required();
  of_plot->add_option("--metric", options->metric, "loss, learning_rate or a metric of the evaluation; default loss");
  on_run(*of_plot, exit_code, [=] { return plot_jobs(*options), 0; });

  const auto add = [&](const char* name, const char* help, std::function<int(const JobsOptions&)> run) {
    CLI::App* sub = command->add_subcommand(name, help);
    sub->add_option("id", options->id, "The job's id, or its name if no other job has it")->required();
    on_run(*sub, exit_code, [=, run = std::move(run)] { return run(*options); });
    return sub;
  };
  add("show", "Show all details of a job", [](const JobsOptions& given) { return show(given), 0; });
  add("watch", "Show progress until the job ends or pauses; exit code 1 if it failed", watch);
  add("pause", "Stop after the current step, with a checkpoint", acting(&TrainingClient::pause));
  add("resume", "Resume from the last checkpoint", resume)
      ->add_option("--world-size", options->world_size, "For a job with several processes: their number from now on");
  add("finish", "End the training now: evaluate and publish as if it were complete", acting(&TrainingClient::finish));
  add("download", "Bring the job's model here: the published version, otherwise its best or last weights", download)
      ->add_option("-o,--output", options->folder, "The folder to make; default the job's id or name");
  add("cancel", "Stop for good", acting(&TrainingClient::cancel));
  add("delete", "Delete the job and its checkpoints",
      [](const JobsOptions& given) { return training(given).remove(given.id), 0; });
  command->footer(
      "Examples:\n"
      "  tensord jobs list --model digits\n"
      "  tensord jobs watch digits-3f9a1c         with a bar on a terminal; ends as the job ends\n"
      "  tensord jobs export digits-3f9a1c --tensorboard runs\n"
      "  tensord jobs rollback digits             the version before the served one again");
}

}  // namespace tensord::server
