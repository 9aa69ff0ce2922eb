#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/config/host_policy_options.h"
#include "server/executor/model/model_files.h"
#include "server/executor/model/model_version.h"

namespace tensord::server {

// Triton's model control modes. none: load all models at the start. poll: follow changes of the folders. explicit: load
// and unload by requests.
enum class ControlMode { kNone, kPoll, kExplicit };
ControlMode parse_control_mode(const std::string& text);  // throws Error{kInvalidArgument}

// Opens a model's files. Throws Error with the reason if it cannot.
using ModelFactory = std::function<std::unique_ptr<const Model>(const ModelFiles& files, const ModelConfig& config)>;

// Writes the archive `base` with the weights of the file `weights` to `out`. Throws Error.
using WeightsWriter = std::function<void(const std::string& base, const std::string& weights, const std::string& out)>;

struct RepositorySettings {
  std::vector<std::string> roots;
  std::vector<std::string> only;  // load these at the start, "*" is all; empty: all, in mode explicit none
  ControlMode mode = ControlMode::kNone;
  int64_t poll_interval_ms = 15000;     // 0: only poll() looks
  bool loads_on_demand = false;         // mode explicit only
  uint64_t memory_limit_bytes = 0;      // of loaded models, archives and tensors; 0: none
  uint64_t override_limit_bytes = 0;    // of files sent by clients and still in use; 0: none
  std::string config_name = {};         // read configs/<name>.pbtxt instead of config.pbtxt, if it exists
  bool needs_complete_configs = false;  // do not complete configurations from the model's file
  bool allows_labels = true;            // find() takes version labels
  bool copies_archives =
      false;                   // copy files before mapping them, so that writing to them does not change a served model
  int workers = 1;             // for models without instance_group
  int threads_per_worker = 0;  // 0: the cores divided by the model's workers
  int cores = 0;               // shared by the runs of all models; 0: each run has its own threads
  size_t max_queue_size = 1024;
  int load_threads = 1;
  int64_t load_timeout_ns = 0;          // a longer load is cancelled; 0: none
  int reload_nice = 0;                  // nice value of threads that load versions of a served model
  HostPolicies host_policies = {};      // where instances run
  RateLimiter* rate_limiter = nullptr;  // null: no rate limiting
  ResponseCache* cache = nullptr;       // for models with response_cache; null: none
  WeightsWriter write_weights = {};     // empty: loading new weights alone is not supported
};

}  // namespace tensord::server
