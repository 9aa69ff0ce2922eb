#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/cache_options.h"
#include "server/config/capture_options.h"
#include "server/config/engine_options.h"
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
  bool strict_readiness = true;  // ready only when every model is
  bool exit_on_error = false;    // end where a model of the start cannot be served

  std::string grpc_address = "127.0.0.1";
  int grpc_port = 8001;             // 0: a free port
  int grpc_infer_thread_count = 0;  // most completion-queue threads; 0: one a core, at least 2
  NetworkOptions network;
  bool allow_metrics = true;
  std::string metrics_address = "127.0.0.1";
  int metrics_port = 8002;              // 0: a free port
  std::string metrics_compat = "none";  // triton: its names beside tensord's

  int workers = 1;                 // per model, where its config says nothing
  int threads = 0;                 // per worker; 0: the cores divided by the workers
  bool share_cores = true;         // a run gets fewer threads while others run
  EngineOptions engine;            // where a model's config says nothing
  uint32_t max_queue_size = 1024;  // requests waiting per model
  int exit_delay_secs = 0;         // from SIGTERM to the beginning of the end
  int exit_timeout_secs = 30;

  std::string training_folder;                         // jobs and their checkpoints; empty: no training
  std::string training_data;                           // files that jobs may train on; empty: none
  int training_jobs = 1;                               // that run at one time
  int training_nice = 19;                              // of jobs' threads: serving goes first
  int training_threads = 0;                            // of a job; 0: half of the cores
  std::string training_plans = "off";                  // "off", "exact", "fused": how steps that repeat are planned
  uint64_t training_memory_bytes = 0;                  // of a job's tensors; 0: no limit
  uint64_t training_upload_bytes = uint64_t{4} << 30;  // of one uploaded archive; 0: no limit
  JoinOptions join;                                    // jobs of several hosts
  std::string ready_file;

  InferOptions infer;
  LogSettings log;
  TraceOptions trace;
  CaptureOptions capture;
  CacheOptions cache;
  RateLimitOptions rate_limit;
  TritonOptions triton;
};

// Adds the flags to a command; the values go into `options`, which must outlive it.
void add_options(CLI::App& app, ServerOptions& options);

// Throws Error{kInvalidArgument} or {kUnimplemented} for what cannot be served.
void validate(const ServerOptions& options);

}  // namespace tensord::server
