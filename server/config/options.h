#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/cache_options.h"
#include "server/config/capture_options.h"
#include "server/config/engine_options.h"
#include "server/config/host_policy_options.h"
#include "server/config/infer_options.h"
#include "server/config/join_options.h"
#include "server/config/log_options.h"
#include "server/config/network_options.h"
#include "server/config/rate_limit_options.h"
#include "server/config/repository_options.h"
#include "server/config/trace_options.h"
#include "server/config/triton_options.h"

namespace CLI {
class App;
}

namespace tensord::server {

// Flags of `tensord serve`, spelled as Triton's where Triton has them.
struct ServerOptions {
  std::string id = "tensord";  // the server's name in ServerMetadata
  RepositoryOptions repository;
  bool strict_readiness = true;  // readiness requires that every model is ready
  bool exit_on_error = false;    // exit if a model cannot be loaded at startup

  std::string grpc_address = "127.0.0.1";
  int grpc_port = 8001;             // 0: a free port
  int grpc_infer_thread_count = 0;  // maximum number of completion-queue threads; 0: one per core, at least 2
  NetworkOptions network;
  bool allow_metrics = true;
  std::string metrics_address = "127.0.0.1";
  int metrics_port = 8002;              // 0: a free port
  std::string metrics_compat = "none";  // triton: adds Triton's metric names to tensord's

  int workers = 1;                 // default per model
  int threads = 0;                 // per worker; 0: the cores divided by the workers
  bool share_cores = true;         // a run gets fewer threads while others run
  EngineOptions engine;            // defaults for models
  uint32_t max_queue_size = 1024;  // queued requests per model
  int exit_delay_secs = 0;         // delay from SIGTERM until the server stops accepting requests
  int exit_timeout_secs = 30;

  std::string training_folder;                         // jobs and their checkpoints; empty: training is off
  std::string training_data;                           // files that jobs may train on; empty: none
  int training_jobs = 1;                               // concurrent jobs
  int training_nice = 19;                              // niceness of training threads, so that serving has priority
  int training_threads = 0;                            // per job; 0: half of the cores
  std::string training_plans = "off";                  // "off", "exact", "fused": how steps that repeat are planned
  uint64_t training_memory_bytes = 0;                  // tensors of one job; 0: no limit
  uint64_t training_upload_bytes = uint64_t{4} << 30;  // per uploaded archive; 0: no limit
  int training_transfer_timeout_secs = 300;
  JoinOptions join;  // training on several nodes
  std::string ready_file;

  InferOptions infer;
  LogSettings log;
  TraceOptions trace;
  CaptureOptions capture;
  CacheOptions cache;
  RateLimitOptions rate_limit;
  HostPolicyOptions host_policy;
  TritonOptions triton;
};

// Adds the flags to a command. `options` receives the values and must outlive the command.
void add_options(CLI::App& app, ServerOptions& options);

// Throws Error{kInvalidArgument} or {kUnimplemented} for options that cannot be served.
void validate(const ServerOptions& options);

}  // namespace tensord::server
