#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/jit/ir/missing_operators.h"
#include "core/jit/ir/refusals.h"
#include "core/jit/runtime/module.h"
#include "server/commands/commands.h"
#include "server/commands/engine_inputs.h"
#include "server/commands/model_options.h"
#ifdef TENSORD_SERVER
#include "server/executor/model/torchscript_model.h"
#endif

namespace tensord::server {
namespace {

struct CheckOptions {
  ModelOptions model;
  std::string method = "forward";
  std::vector<std::string> inputs;
};

// Collects everything that prevents a model from being served, in the order in which it is found.
class ModelCheck {
 public:
  explicit ModelCheck(const CheckOptions& options) : options_(options) {}

  void run() {
    const std::shared_ptr<jit::Module> module = load();
    if (!module || !refusals_.empty()) return;
    if (!options_.inputs.empty()) try_inputs(*module);
    check_serving();
  }

  const std::vector<std::string>& refusals() const { return refusals_; }
  const std::vector<std::string>& doubts() const { return doubts_; }
  const std::string& signature() const { return signature_; }

 private:
  void add(const std::string& refusal) {
    if (std::ranges::find(refusals_, refusal) == refusals_.end()) refusals_.push_back(refusal);
  }

  // Loads and compiles the model; returns null if it is refused.
  std::shared_ptr<jit::Module> load() {
    std::shared_ptr<jit::Module> module;
    const jit::RefusalCollector collector;
    try {
      module = load_model(options_.model, load_options(options_.model));
      const jit::Method& method = module->method(options_.method);
      signature_ = method.schema().str();
      for (const jit::MissingOperator& at : jit::missing_operators(method.graph(), module->functions())) {
        doubts_.push_back(concat(at.message, " (", at.location.str(), ")"));
      }
    } catch (const Error& error) {
      // The error may only follow from the refusals that were collected.
      if (collector.refusals().empty()) add(error.what());
      module = nullptr;
    }
    for (const std::string& refusal : collector.refusals()) add(refusal);
    return module;
  }

  void try_inputs(const jit::Module& module) {
    try {
      const jit::Method& method = module.method(options_.method);
      const std::unique_ptr<jit::Frame> frame = jit::make_frame();
      const Device device = parse_device(options_.model.device);
      const auto inputs = read_call("--input", options_.inputs, module, method, WholeNumber::kIsSize);
      at_home(method.run(*frame, ops::to_device(inputs, device)), device);
    } catch (const Error& error) {
      add(concat("with these inputs: ", error.what()));
    }
  }

  // Checks the model as a version in a repository: inputs and outputs that requests cannot carry.
  void check_serving() {
#ifdef TENSORD_SERVER
    if (options_.method != "forward") return;
    try {
      load_torchscript_model({.model = options_.model.model}, ModelConfig{},
                             EngineOptions{.device = options_.model.device});
    } catch (const Error& error) {
      add(concat("to be served: ", error.what()));
    }
#endif
  }

  const CheckOptions& options_;
  std::vector<std::string> refusals_;
  std::vector<std::string> doubts_;  // unsupported calls that a run may or may not reach
  std::string signature_;
};

int check_model(const CheckOptions& options) {
  ModelCheck check(options);
  check.run();
  for (const std::string& refusal : check.refusals()) std::cout << "refused  " << to_printable(refusal) << "\n";
  for (const std::string& doubt : check.doubts()) {
    std::cout << "below a branch  " << to_printable(doubt) << "; a run that comes there ends UNIMPLEMENTED\n";
  }
  if (check.refusals().empty()) std::cout << "it runs: " << to_printable(check.signature()) << "\n";
  return check.refusals().empty() ? 0 : kExitFailed;
}

}  // namespace

void add_check_command(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("check", "Check whether a model will run and be served, and list all problems");
  auto options = std::make_shared<CheckOptions>();
  add_model_options(*command, options->model);
  command->add_option("--method", options->method, "The method to check")->capture_default_str();
  command->add_option("--input", options->inputs, concat("Run it with these inputs too: ", kInputHelp))
      ->allow_extra_args(false);
  command->callback([options, exit_code] { *exit_code = check_model(*options); });
}

}  // namespace tensord::server
