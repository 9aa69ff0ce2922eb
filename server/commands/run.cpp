#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/runtime/module.h"
#include "server/commands/arguments_file.h"
#include "server/commands/commands.h"
#include "server/commands/engine_inputs.h"
#include "server/commands/model_options.h"
#include "server/commands/print_value.h"

namespace tensord::server {

namespace {

// One --call METHOD,A.pt,R.pt.
struct Call {
  std::string method;
  std::string arguments_path;
  std::string result_path;
};

struct RunCommandOptions {
  ModelOptions model;
  std::vector<std::string> calls;
  std::vector<std::string> inputs;  // for one call of `method`
  std::string method = "forward";
  std::string output_path;   // file for the result; empty: it is printed
  bool has_grad = false;     // run with grad mode on
  bool is_training = false;  // call train() before the first call
  std::string save_path;     // file for the model afterwards; empty: none
};

// A method name has no comma. If the paths contain commas, the split is the first one whose left side is an existing
// file.
Call parse_call(const std::string& text) {
  const size_t first = text.find(',');
  const size_t last = text.rfind(',');
  check(first != std::string::npos && first != last && first > 0, "--call ", text, ": expected METHOD,A.pt,R.pt");
  size_t split = last;
  for (size_t comma = text.find(',', first + 1); comma != std::string::npos; comma = text.find(',', comma + 1)) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(text.substr(first + 1, comma - first - 1), ignored)) {
      split = comma;
      break;
    }
  }
  Call call{text.substr(0, first), text.substr(first + 1, split - first - 1), text.substr(split + 1)};
  check(!call.arguments_path.empty() && !call.result_path.empty(), "--call ", text, ": expected METHOD,A.pt,R.pt");
  return call;
}

void run_calls(const RunCommandOptions& options) {
  std::vector<Call> calls;
  for (const std::string& text : options.calls) calls.push_back(parse_call(text));
  const GradModeGuard guard({.is_enabled = options.has_grad, .is_inference = !options.has_grad});
  jit::LoadOptions load = load_options(options.model);
  load.for_training = options.has_grad || options.is_training;
  const std::shared_ptr<jit::Module> module = load_model(options.model, load);
  if (options.is_training) module->set_training(true);
  const std::unique_ptr<jit::Frame> frame = jit::make_frame();
  if (!options.inputs.empty()) {
    const jit::Method& method = module->method(options.method);
    const std::vector<ops::Value> arguments =
        ops::to_device(read_call("--input", options.inputs, *module, method, WholeNumber::kIsValue), load.device);
    const ops::Value result = at_home(method.run(*frame, arguments), load.device);
    if (options.output_path.empty()) {
      print_value(std::cout, result);
    } else {
      jit::save_torch_file(options.output_path, result);
    }
  }
  for (const Call& call : calls) {
    const jit::Method& method = module->method(call.method);
    const std::vector<ops::Value> arguments =
        ops::to_device(read_arguments(call.arguments_path, method.schema()), load.device);
    jit::save_torch_file(call.result_path, at_home(method.run(*frame, arguments), load.device));
  }
  if (!options.save_path.empty()) module->save(options.save_path);
}

}  // namespace

void add_run_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run methods of a model in this process, in order");
  auto options = std::make_shared<RunCommandOptions>();
  add_model_options(*command, options->model);
  auto* calls = command
                    ->add_option("--call", options->calls,
                                 "METHOD,A.pt,R.pt: calls METHOD with the tuple of arguments that torch.save wrote to "
                                 "A.pt and writes its result to R.pt, for torch.load; may be repeated")
                    ->allow_extra_args(false);
  auto* inputs =
      command->add_option("--input", options->inputs, concat("Call a method once and print its result: ", kInputHelp))
          ->allow_extra_args(false)
          ->excludes(calls);
  command->add_option("--method", options->method, "The method that --input calls")
      ->capture_default_str()
      ->needs(inputs);
  command
      ->add_option("--output", options->output_path,
                   "Write the result of --input to this file, for torch.load, instead of printing it")
      ->needs(inputs);
  command->add_flag("--grad", options->has_grad,
                    "Run with grad mode on; parameters require gradients as they did when they were saved");
  command->add_flag("--train", options->is_training, "Put the model into training mode first, like its train()");
  command->add_option("--save", options->save_path,
                      "Write the model with its state after the calls, as an archive for torch.jit.load");
  command->callback([options, exit_code] {
    if (options->calls.empty() && options->inputs.empty()) {
      throw CommandError(kExitUsage, "run: give the arguments with --call METHOD,A.pt,R.pt, or --input");
    }
    run_calls(*options);
    *exit_code = 0;
  });
}

}  // namespace tensord::server
