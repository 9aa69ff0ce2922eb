#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Which models are served, and how they come and go.
struct RepositoryOptions {
  std::vector<std::string> model_repositories;
  std::string model_control_mode = "none";  // none, poll, explicit
  int poll_secs = 15;                       // of mode poll
  // none: load only these, all where it is empty. explicit: load these at the start, "*" is all of them.
  std::vector<std::string> load_models;
  std::string config_name;           // configs/<name>.pbtxt of a model instead of its config.pbtxt, where it is there
  bool completes_configs = true;     // what a configuration leaves out, or all of it, is read from the model's file
  int load_threads = 4;              // models that are loaded at one time
  int load_timeout_secs = 600;       // after which a load is given up; 0: never
  int reload_nice = 10;              // of the threads that load a model again while it is served
  bool load_on_demand = false;       // of mode explicit: a request for a model that is not loaded loads it
  uint64_t memory_limit_bytes = 0;   // of the models that are loaded: archives and tensors; 0: no limit
  bool allow_version_labels = true;  // a request may name a version by its label
  // Of files that clients bring with a load, all that are in use together.
  uint64_t override_limit_bytes = uint64_t{4} << 30;
  // "on": archives are copied before they are mapped, so that nobody can change them under a model that serves. "auto":
  // where they may change, which is in every mode but none.
  std::string copy_archives = "auto";

  bool copies_archives() const {
    return copy_archives == "on" || (copy_archives == "auto" && model_control_mode != "none");
  }
};

// Adds the flags to a command; the values go into `options`, which must outlive it.
void add_repository_options(CLI::App& app, RepositoryOptions& options);

// Throws Error{kInvalidArgument} that names the flag.
void validate(const RepositoryOptions& options);

}  // namespace tensord::server
