#include "server/commands/model_options.h"

#include <CLI/CLI.hpp>

#include <charconv>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/passes/pipeline.h"
#include "core/tensor/device.h"

namespace tensord::server {

namespace {

int64_t parse_limit(const std::string& text, size_t colon) {
  int64_t limit = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, limit);
  check(code == std::errc() && stop == end && limit >= 0, "--jit-limit ", text, ": expected PASS:N with N at least 0");
  return limit;
}

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("MODEL", options.model, "TorchScript archive written by torch.jit.save")->required();
  command.add_option("--device", options.device, "Where the model runs")->capture_default_str();
  command.add_option("--threads", options.threads, "Threads of one call; 0 = every core this process may use")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--jit-disable", options.disabled, "Passes to leave out, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--jit-limit", options.limits, "PASS:N: the pass makes at most N changes; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--no-optimize", options.no_optimize, "Run no pass at all");
}

jit::LoadOptions load_options(const ModelOptions& options) {
  jit::LoadOptions out;
  out.optimize = !options.no_optimize;
  for (const std::string& pass : options.disabled) out.passes.disabled.insert(jit::find_pass(pass).name);
  for (const std::string& text : options.limits) {
    const size_t colon = text.rfind(':');
    check(colon != std::string::npos && colon > 0, "--jit-limit ", text, ": expected PASS:N");
    out.passes.limits[jit::find_pass(text.substr(0, colon)).name] = parse_limit(text, colon);
  }
  return out;
}

std::shared_ptr<jit::Module> load_model(const ModelOptions& options, const jit::LoadOptions& load) {
  const Device device = parse_device(options.device);
  if (device.kind != DeviceKind::kCPU) {
    fail(ErrorCode::kUnimplemented, "--device ", options.device, ": models run on the CPU in this version");
  }
  set_thread_budget(options.threads > 0 ? options.threads : available_cores());
  return jit::Module::load(options.model, load);
}

}  // namespace tensord::server
