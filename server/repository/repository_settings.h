#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/model/model_files.h"
#include "server/executor/model/model_version.h"

namespace tensord::server {

// none: the models of the start stay. poll: as the folders change. explicit: by calls.
enum class ControlMode { kNone, kPoll, kExplicit };
ControlMode parse_control_mode(const std::string& text);  // throws Error{kInvalidArgument}

// Opens a model's files. Throws Error with the reason it cannot.
using ModelFactory = std::function<std::unique_ptr<const Model>(const ModelFiles& files, const ModelConfig& config)>;

// Writes the archive `base` with the weights of the file `weights` to `out`. Throws Error.
using WeightsWriter = std::function<void(const std::string& base, const std::string& weights, const std::string& out)>;

struct RepositorySettings {
  std::vector<std::string> roots;
  std::vector<std::string> only;  // load these at the start, "*" is all; empty: all, in mode explicit none
  ControlMode mode = ControlMode::kNone;
  int64_t poll_interval_ms = 15000;     // 0: only poll() looks
  bool loads_on_demand = false;         // of kExplicit
  uint64_t memory_limit_bytes = 0;      // of loaded models: archives and tensors; 0: none
  uint64_t override_limit_bytes = 0;    // of files that clients brought and that are in use; 0: none
  std::string config_name = {};         // configs/<name>.pbtxt instead of config.pbtxt, where it is there
  bool needs_complete_configs = false;  // nothing of a configuration is completed from the model's file
  bool allows_labels = true;            // find() takes labels of versions
  bool copies_archives = false;         // so that writing to the file does not reach a model that serves
  int workers = 1;                      // where the config says nothing
  int threads_per_worker = 0;           // 0: the cores divided by the model's workers
  int cores = 0;                        // that runs of all models share; 0: each takes its threads
  size_t max_queue_size = 1024;
  int load_threads = 1;
  int64_t load_timeout_ns = 0;          // a load that takes longer is given up; 0: none
  int reload_nice = 0;                  // of the threads that load versions of a model that is served
  RateLimiter* rate_limiter = nullptr;  // null: no limits
  ResponseCache* cache = nullptr;       // of models with response_cache; null: none
  WeightsWriter write_weights = {};     // empty: weights alone cannot be loaded
};

}  // namespace tensord::server
