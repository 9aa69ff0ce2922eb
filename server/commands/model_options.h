#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/jit/runtime/module.h"
#include "core/ops/to_device.h"

namespace CLI {
class App;
}

namespace tensord::server {

// Flags of every command that loads a model in this process.
struct ModelOptions {
  std::string model;  // path of the archive
  std::string device = "cpu";
  int threads = 0;                    // 0: all cores that this process may use
  std::vector<std::string> disabled;  // --jit-disable
  std::vector<std::string> limits;    // --jit-limit PASS:N
  std::string precision = "f32";
  bool no_optimize = false;
  bool no_plan = false;
};

// Adds MODEL and the flags to a subcommand. `options` must outlive the parse.
void add_model_options(CLI::App& command, ModelOptions& options);
// Converts to the engine's options. Throws Error{kInvalidArgument} for an unknown pass or a bad --jit-limit.
jit::LoadOptions load_options(const ModelOptions& options);
// Throws Error{kNotFound} that names the nearest file if nothing is at this path.
void check_is_there(const std::string& model);
// Sets the calling thread's thread budget and loads the model onto its device. Throws Error.
std::shared_ptr<jit::Module> load_model(const ModelOptions& options, const jit::LoadOptions& load);

// A result in the host's memory, when the work on the device has run. Throws Error when that failed.
ops::Value at_home(const ops::Value& value, Device from);

}  // namespace tensord::server
