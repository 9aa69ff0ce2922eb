#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/commands/commands.h"
#include "server/commands/job_view.h"
#include "server/training/job_json.h"
#include "server/transport/training_client.h"

namespace tensord::server {
namespace {

struct JobsOptions {
  std::string address = "127.0.0.1:8001";
  bool json = false;
  std::string id;
  std::string model;
};

void print(const JobStatus& status, bool json) {
  if (json) {
    std::cout << to_json(status).dump() << "\n";
  } else {
    std::cout << job_line(status) << "\n";
  }
}

void list(const JobsOptions& options) {
  TrainingClient client(options.address);
  const std::vector<JobStatus> jobs = client.list(options.model);
  if (jobs.empty() && !options.json) std::cout << "no jobs\n";
  for (const JobStatus& job : jobs) print(job, options.json);
}

int watch(const JobsOptions& options) {
  TrainingClient client(options.address);
  JobView view(options.json);
  client.watch(options.id, [&](const JobStatus& status, const std::vector<CurvePoint>& points) {
    view.show(status, points);
    return true;
  });
  view.finish();
  return view.status().state == JobState::kFailed ? 1 : 0;
}

void show(const JobsOptions& options) {
  TrainingClient client(options.address);
  const JobStatus status = client.get(options.id);
  std::cout << (options.json ? to_json(status).dump(2) + "\n" : job_report(status));
}

void roll_back(const JobsOptions& options) {
  TrainingClient client(options.address);
  const auto [withdrawn, served] = client.roll_back(options.model);
  if (options.json) {
    std::cout << nlohmann::json{{"withdrawn_version", withdrawn}, {"served_version", served}}.dump() << "\n";
  } else {
    std::cout << options.model << ": version " << withdrawn << " withdrawn, version " << served << " is served\n";
  }
}

}  // namespace

void add_jobs_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<JobsOptions>();
  CLI::App* command = app.add_subcommand("jobs", "Training jobs of a running daemon");
  command->require_subcommand(1);
  command->fallthrough();
  command->add_option("--address", options->address, "Where the daemon listens for gRPC")->capture_default_str();
  command->add_flag("--json", options->json, "JSON instead of text, one object a line");

  CLI::App* of_list = command->add_subcommand("list", "All jobs, oldest first");
  of_list->add_option("--model", options->model, "Only jobs of this model");
  of_list->callback([=] { list(*options); });
  CLI::App* of_rollback = command->add_subcommand("rollback", "Serve a model's version before the served one again");
  of_rollback->add_option("model", options->model, "The model")->required();
  of_rollback->callback([=] { roll_back(*options); });

  const auto add = [&](const char* name, const char* help, std::function<void(const JobsOptions&)> run) {
    CLI::App* sub = command->add_subcommand(name, help);
    sub->add_option("id", options->id, "The job")->required();
    sub->callback([=, run = std::move(run)] { run(*options); });
  };
  add("show", "All there is to say of a job", show);
  add("watch", "Progress until the job ends or pauses; exit code 1 when it failed",
      [exit_code](const JobsOptions& given) { *exit_code = watch(given); });
  add("pause", "Stop after the current step, with a checkpoint",
      [](const JobsOptions& given) { print(TrainingClient(given.address).pause(given.id), given.json); });
  add("resume", "Go on, from the last checkpoint",
      [](const JobsOptions& given) { print(TrainingClient(given.address).resume(given.id), given.json); });
  add("cancel", "Stop for good",
      [](const JobsOptions& given) { print(TrainingClient(given.address).cancel(given.id), given.json); });
  add("delete", "Forget the job and its checkpoints",
      [](const JobsOptions& given) { TrainingClient(given.address).remove(given.id); });
}

}  // namespace tensord::server
