#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/progress.h"
#include "server/commands/client/table.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kLoadingTimeout = std::chrono::seconds(600);
// The maximum size of a gRPC message; the server may allow less.
constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 31) - (1 << 20);

struct ModelsOptions {
  ConnectionOptions connection;
  bool only_ready = false;
  bool with_statistics = false;
  bool with_dependents = false;
  std::string model;
  std::string config_file;
  std::vector<std::string> files;
  std::string weights;
  int64_t version = 1;
  std::string labels;
};

int list_models(const ModelsOptions& options) {
  const auto models = connect(options.connection).models(options.only_ready);
  Table table({"MODEL", "VERSION", "STATE", "REASON"});
  for (const client::ModelState& model : models) {
    if (options.connection.json) {
      print_json_line(
          Json{{"name", model.name}, {"version", model.version}, {"state", model.state}, {"reason", model.reason}});
    } else {
      table.add({model.name, model.version, model.state.empty() ? "not loaded" : model.state, model.reason});
    }
  }
  if (!options.connection.json) table.print(std::cout);
  return 0;
}

Json json_of(const client::ModelStatistics& of) {
  Json durations;
  const auto add = [&](const char* name, const client::ModelStatistics::Duration& duration) {
    durations[name] = {{"count", duration.count}, {"seconds", static_cast<double>(duration.ns) / 1e9}};
  };
  add("success", of.success);
  add("fail", of.fail);
  add("queue", of.queue);
  add("compute_input", of.compute_input);
  add("compute_infer", of.compute_infer);
  add("compute_output", of.compute_output);
  add("cache_hit", of.cache_hit);
  add("cache_miss", of.cache_miss);
  return {{"name", of.name},
          {"version", of.version},
          {"inference_count", of.inference_count},
          {"execution_count", of.execution_count},
          {"last_inference_ms", of.last_inference_ms},
          {"durations", durations}};
}

int list_statistics(const ModelsOptions& options) {
  const auto mean_ms = [](const client::ModelStatistics::Duration& duration) {
    return number_text(
        duration.count == 0 ? 0 : static_cast<double>(duration.ns) / 1e6 / static_cast<double>(duration.count), 3);
  };
  Table table({"MODEL", "VERSION", "REQUESTS", "FAILED", "MEAN MS", "QUEUE MS", "COMPUTE MS"});
  for (const client::ModelStatistics& of : connect(options.connection).statistics()) {
    if (options.connection.json) {
      print_json_line(json_of(of));
    } else {
      table.add({of.name, of.version, std::to_string(of.success.count), std::to_string(of.fail.count),
                 mean_ms(of.success), mean_ms(of.queue), mean_ms(of.compute_infer)});
    }
  }
  if (!options.connection.json) table.print(std::cout);
  return 0;
}

int done(const ModelsOptions& options, const std::string& what) {
  if (!options.connection.json) std::cout << options.model << ": " << what << "\n";
  return 0;
}

client::LoadOptions load_of(const ModelsOptions& options) {
  client::LoadOptions load;
  if (!options.weights.empty()) {
    const bool is_safetensors = options.weights.ends_with(".safetensors");
    load.files[concat(options.version, is_safetensors ? "/weights.safetensors" : "/weights.pt")] =
        read_file(options.weights, kMaxFileBytes);
    return load;
  }
  if (!options.config_file.empty()) load.config = read_file(options.config_file, kMaxFileBytes);
  for (const auto& [place, file] : pairs(options.files, "--file", "PATH_IN_MODEL=FILE")) {
    load.files[place] = read_file(file, kMaxFileBytes);
  }
  return load;
}

void move_labels(client::Client& daemon, const ModelsOptions& options) {
  std::vector<std::string> labels;
  std::istringstream text(options.labels);
  for (std::string label; std::getline(text, label, ',');) labels.push_back(label);
  pairs(labels, "labels", "LABEL=VERSION");
  // Nothing but the labels, so that the versions stay loaded as they are.
  daemon.load_model(options.model, {.parameters = {{"version_labels", options.labels}}},
                    call_options(options.connection, kLoadingTimeout));
}

int load(const ModelsOptions& options) {
  client::Client daemon = connect(options.connection);
  const client::LoadOptions load = load_of(options);
  {
    const Ticker ticker(!options.connection.json,
                        [&](double seconds) { return concat(options.model, ": loading  ", duration_text(seconds)); });
    daemon.load_model(options.model, load, call_options(options.connection, kLoadingTimeout));
    if (!options.labels.empty()) move_labels(daemon, options);
  }
  return done(options, "loaded");
}

int unload(const ModelsOptions& options) {
  client::Client daemon = connect(options.connection);
  {
    const Ticker ticker(!options.connection.json,
                        [&](double seconds) { return concat(options.model, ": unloading  ", duration_text(seconds)); });
    daemon.unload_model(options.model, options.with_dependents, call_options(options.connection, kLoadingTimeout));
  }
  return done(options, "unloaded");
}

int label(const ModelsOptions& options) {
  client::Client daemon = connect(options.connection);
  move_labels(daemon, options);
  return done(options, options.labels);
}

void add_list_command(CLI::App& app, int* exit_code, const std::shared_ptr<ModelsOptions>& options) {
  CLI::App* models = app.add_subcommand("models", "Models of a running server and their states");
  add_client_options(*models, options->connection);
  CLI::Option* ready = models->add_flag("--ready", options->only_ready, "Only those that are ready");
  models->add_flag("--statistics", options->with_statistics, "Requests and mean times of loaded models")
      ->excludes(ready);
  CLI::App* of_label =
      models->add_subcommand("label", "Move version labels, such as stable=2,canary=3; canary= removes one");
  of_label->fallthrough();
  of_label->add_option("model", options->model, "The model")->required();
  of_label->add_option("labels", options->labels, "LABEL=VERSION, separated by commas")->required();
  models->footer(
      "Examples:\n"
      "  tensord models                              what there is\n"
      "  tensord models --ready --json               an object a line, for programs\n"
      "  tensord models --statistics                 requests and where their time went\n"
      "  tensord models label resnet50 stable=2      requests for `stable` get version 2");
  on_run(*models, exit_code, [=] {
    if (of_label->parsed()) return label(*options);
    return options->with_statistics ? list_statistics(*options) : list_models(*options);
  });
}

void add_load_command(CLI::App& app, int* exit_code, const std::shared_ptr<ModelsOptions>& options) {
  CLI::App* command = app.add_subcommand("load", "Load a model on a running server, or reload its changes");
  add_client_options(*command, options->connection);
  command->add_option("model", options->model, "The model")->required();
  CLI::Option* config =
      command->add_option("--config", options->config_file, "JSON file with a configuration instead of config.pbtxt");
  CLI::Option* files =
      command
          ->add_option("--file", options->files,
                       "PATH_IN_MODEL=FILE: use this file instead of the model's folder; may be repeated")
          ->allow_extra_args(false);
  command->add_option("--weights", options->weights, "Only new weights: a state dict of torch.save, or .safetensors")
      ->excludes(config)
      ->excludes(files);
  command->add_option("--version", options->version, "The version that gets the weights")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--label", options->labels, "Then move version labels, such as stable=2,canary=3");
  command->footer(
      "Examples:\n"
      "  tensord load resnet50                                        from the model repository\n"
      "  tensord load resnet50 --weights new.pt --version 2           the served archive with other weights\n"
      "  tensord load mine --config c.json --file 1/model.pt=m.pt     from this machine");
  on_run(*command, exit_code, [=] { return load(*options); });
}

}  // namespace

void add_models_commands(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<ModelsOptions>();
  add_list_command(app, exit_code, options);
  add_load_command(app, exit_code, options);
  CLI::App* command =
      app.add_subcommand("unload", "Unload a model of a running server; returns once its memory is released");
  add_client_options(*command, options->connection);
  command->add_option("model", options->model, "The model")->required();
  command->add_flag("--dependents", options->with_dependents,
                    "Also unload the models that were loaded for an ensemble, and ensembles that use the model");
  command->footer("Examples:\n  tensord unload resnet50");
  on_run(*command, exit_code, [=] { return unload(*options); });
}

}  // namespace tensord::server
