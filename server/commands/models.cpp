#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "server/commands/commands.h"
#include "server/transport/repository_client.h"

namespace tensord::server {
namespace {

struct ModelsOptions {
  std::string address = "127.0.0.1:8001";
  bool json = false;
  bool only_ready = false;
  bool with_dependents = false;
  std::string model;
  std::string config_file;
  std::vector<std::string> files;
  std::string weights;
  int64_t version = 1;
  std::string labels;
};

void list(const ModelsOptions& options) {
  const std::vector<RepositoryClient::Model> models = RepositoryClient(options.address).index(options.only_ready);
  if (options.json) {
    for (const auto& model : models) {
      std::cout << nlohmann::json{{"name", model.name},
                                  {"version", model.version},
                                  {"state", model.state},
                                  {"reason", model.reason}}
                       .dump()
                << "\n";
    }
    return;
  }
  size_t width = 0;
  for (const auto& model : models) width = std::max(width, model.name.size());
  for (const auto& model : models) {
    const std::string state = model.state.empty() ? "not loaded" : model.state;
    std::cout << model.name << std::string(width - model.name.size() + 2, ' ') << model.version
              << std::string(model.version.size() < 6 ? 6 - model.version.size() : 1, ' ') << state
              << (model.reason.empty() ? "" : ": " + model.reason) << "\n";
  }
}

RepositoryClient::Load load_of(const ModelsOptions& options) {
  RepositoryClient::Load load{.model = options.model, .config = {}, .files = {}, .labels = options.labels};
  if (!options.config_file.empty()) {
    std::ifstream in(options.config_file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) fail(ErrorCode::kNotFound, options.config_file, ": cannot be read");
    load.config = text.str();
  }
  for (const std::string& file : options.files) {
    const size_t sign = file.find('=');
    check(sign != std::string::npos && sign > 0, "--file takes PATH_IN_MODEL=FILE, got '", file, "'");
    load.files[file.substr(0, sign)] = file.substr(sign + 1);
  }
  if (!options.weights.empty()) {
    const bool is_safetensors = options.weights.ends_with(".safetensors");
    load.files[concat(options.version, is_safetensors ? "/weights.safetensors" : "/weights.pt")] = options.weights;
  }
  return load;
}

void load(const ModelsOptions& options) {
  RepositoryClient(options.address).load(load_of(options));
  if (!options.json) std::cout << options.model << ": loaded\n";
}

void unload(const ModelsOptions& options) {
  RepositoryClient(options.address).unload(options.model, options.with_dependents);
  if (!options.json) std::cout << options.model << ": unloaded\n";
}

void label(const ModelsOptions& options) {
  RepositoryClient(options.address)
      .load({.model = options.model, .config = {}, .files = {}, .labels = options.labels, .labels_only = true});
  if (!options.json) std::cout << options.model << ": " << options.labels << "\n";
}

void add_common(CLI::App& command, ModelsOptions& options) {
  command.add_option("--address", options.address, "Where the daemon listens for gRPC")->capture_default_str();
  command.add_flag("--json", options.json, "JSON instead of text, one object a line");
}

}  // namespace

void add_models_commands(CLI::App& app) {
  const auto options = std::make_shared<ModelsOptions>();
  CLI::App* models = app.add_subcommand("models", "Models of a running daemon and their states");
  add_common(*models, *options);
  models->add_flag("--ready", options->only_ready, "Only those that are ready");
  CLI::App* of_label =
      models->add_subcommand("label", "Move version labels, as stable=2,canary=3; canary= removes one");
  of_label->fallthrough();
  of_label->add_option("model", options->model, "The model")->required();
  of_label->add_option("labels", options->labels, "LABEL=VERSION, separated by commas")->required();
  of_label->callback([=] { label(*options); });
  models->callback([=] {
    if (of_label->parsed()) return;
    list(*options);
  });

  CLI::App* of_load = app.add_subcommand("load", "Load a model of a running daemon, or what has changed of it");
  add_common(*of_load, *options);
  of_load->add_option("model", options->model, "The model")->required();
  of_load->add_option("--config", options->config_file, "JSON file with a configuration instead of config.pbtxt");
  of_load->add_option("--file", options->files, "PATH_IN_MODEL=FILE: instead of the model's folder; may be repeated")
      ->allow_extra_args(false);
  of_load->add_option("--weights", options->weights, "Only new weights: a state dict of torch.save, or .safetensors");
  of_load->add_option("--version", options->version, "The version that gets the weights")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  of_load->add_option("--label", options->labels, "Then move version labels, as stable=2,canary=3");
  of_load->callback([=] { load(*options); });

  CLI::App* of_unload =
      app.add_subcommand("unload", "Unload a model of a running daemon; returns with the memory back");
  add_common(*of_unload, *options);
  of_unload->add_option("model", options->model, "The model")->required();
  of_unload->add_flag("--dependents", options->with_dependents,
                      "Also the models of an ensemble that were loaded for it, and ensembles that run the model");
  of_unload->callback([=] { unload(*options); });
}

}  // namespace tensord::server
