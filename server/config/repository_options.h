#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Which models are served, and when they are loaded.
struct RepositoryOptions {
  std::vector<std::string> model_repositories;
  std::string model_control_mode = "none";  // none, poll, explicit
  int poll_secs = 15;                       // in mode poll
  // Mode none: load only these, or all models if empty. Mode explicit: load these at startup; "*" means all.
  std::vector<std::string> load_models;
  std::string config_name;           // use configs/<name>.pbtxt of a model instead of its config.pbtxt if it exists
  bool completes_configs = true;     // complete missing configuration from the model's file
  int load_threads = 4;              // concurrent model loads
  int load_timeout_secs = 600;       // time limit of a load; 0: none
  int reload_nice = 10;              // niceness of threads that reload a model while it is served
  bool load_on_demand = false;       // mode explicit: a request for a model that is not loaded loads it
  uint64_t memory_limit_bytes = 0;   // for loaded models, archives and tensors; 0: no limit
  bool allow_version_labels = true;  // requests may name a version by its label
  // Total size of the files that clients have sent with load requests and that are in use.
  uint64_t override_limit_bytes = uint64_t{4} << 30;
  // "on": archives are copied before they are mapped, so that changes to the file cannot affect a served model. "auto":
  // copied in every mode but none, because the files may change there.
  std::string copy_archives = "auto";

  bool copies_archives() const {
    return copy_archives == "on" || (copy_archives == "auto" && model_control_mode != "none");
  }
};

// Adds the flags to a command. `options` receives the values and must outlive the command.
void add_repository_options(CLI::App& app, RepositoryOptions& options);

// Throws Error{kInvalidArgument} that names the flag.
void validate(const RepositoryOptions& options);

}  // namespace tensord::server
