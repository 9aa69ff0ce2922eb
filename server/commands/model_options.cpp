#include "server/commands/model_options.h"

#include <CLI/CLI.hpp>

#include <filesystem>

#include "core/base/device.h"
#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/parallel.h"
#include "core/jit/runtime/load_flags.h"
#include "core/ops/to_device.h"
#include "core/tensor/device_runtime.h"

namespace tensord::server {

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("MODEL", options.model, "The model's file: TorchScript, .pt2, ONNX, or model.py")->required();
  command.add_option("--device", options.device, "Device of the model: cpu, or cuda:N")->capture_default_str();
  command.add_option("--threads", options.threads, "Threads of one call; 0: every core available to this process")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--jit-disable", options.disabled, "Passes to disable, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--jit-limit", options.limits, "PASS:N: the pass makes at most N changes; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--precision", options.precision,
                  "Type of the weights in large matrix products; tf32: f32 weights, rounded to TF32 on a GPU")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "int8"}))
      ->capture_default_str();
  command.add_flag("--no-optimize", options.no_optimize, "Disable all passes");
  command.add_flag("--no-plan", options.no_plan, "Interpret every run instead of planning for shapes");
}

jit::LoadOptions load_options(const ModelOptions& options) {
  jit::LoadOptions out;
  out.device = parse_device(options.device);
  out.optimize = !options.no_optimize;
  jit::set_precision(out, options.precision);
  out.plan.is_enabled = !options.no_plan;
  for (const std::string& pass : options.disabled) jit::disable_pass(out, pass);
  for (const std::string& limit : options.limits) jit::limit_pass(out, limit);
  return out;
}

void check_is_there(const std::string& model) {
  std::error_code error;
  if (std::filesystem::exists(model, error) || error) return;
  fail(ErrorCode::kNotFound, model, ": cannot be opened: No such file or directory", nearest_file(model));
}

std::shared_ptr<jit::Module> load_model(const ModelOptions& options, const jit::LoadOptions& load) {
  set_thread_budget(options.threads > 0 ? options.threads : available_cores());
  check_is_there(options.model);
  return jit::Module::load(options.model, load);
}

ops::Value at_home(const ops::Value& value, Device from) {
  if (from.is_host()) return value;
  synchronize(from);
  return ops::to_device(value, Device{});
}

}  // namespace tensord::server
