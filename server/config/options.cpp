#include "server/config/options.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"

namespace tensord::server {

void add_options(CLI::App& app, ServerOptions& options) {
  app.add_option("--id", options.id, "The server's name in its metadata; Triton uses triton")->capture_default_str();
  add_repository_options(app, options.repository);
  app.add_option("--strict-readiness", options.strict_readiness, "Report ready only if every model is")
      ->capture_default_str();
  app.add_option("--exit-on-error", options.exit_on_error,
                 "Exit with an error if a model cannot be served at startup, instead of serving the others")
      ->capture_default_str();

  app.add_option("--grpc-address", options.grpc_address, "Address to listen on for gRPC")->capture_default_str();
  app.add_option("--grpc-port", options.grpc_port, "Port for gRPC; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--grpc-infer-thread-count", options.grpc_infer_thread_count,
                 "Maximum of threads that process requests: one normally, more while it cannot keep up; 0: one for "
                 "each core, at least 2")
      ->check(CLI::Range(0, 256));
  add_network_options(app, options.network);
  app.add_option("--allow-metrics", options.allow_metrics, "Serve Prometheus metrics")->capture_default_str();
  app.add_option("--metrics-address", options.metrics_address, "Address to listen on for metrics")
      ->capture_default_str();
  app.add_option("--metrics-port", options.metrics_port, "Port for metrics; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();

  app.add_option("--metrics-compat", options.metrics_compat, "triton: also provide metrics under Triton's names")
      ->check(CLI::IsMember({"none", "triton"}))
      ->capture_default_str();

  app.add_option("--workers", options.workers, "Workers per model, if its configuration has no instance_group")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads per worker; 0 divides the cores by the workers")
      ->check(CLI::Range(0, 1024));
  app.add_option("--share-cores", options.share_cores,
                 "Give a run that starts beside others fewer threads, so that their sum is about the number of cores; "
                 "results may then differ in their last bits")
      ->capture_default_str();
  app.add_option(
         "--device", options.engine.device,
         "Device of models whose configuration has no instance_group: cpu, or cuda:N; `tensord devices` lists them")
      ->capture_default_str();
  app.add_option(
         "--model-load-gpu-limit", options.engine.gpu_limits,
         "GPU:SHARE: no model is loaded onto this GPU while more than this share of its memory is in use, 0 to 1; "
         "may be repeated")
      ->allow_extra_args(false);
  app.add_option("--precision", options.engine.precision,
                 "Type of the weights in large matrix products: f32, bf16, int8, or auto, the fastest on the warm-up "
                 "requests; tf32: f32, rounded to TF32 on a GPU")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "int8", kAutoPrecision}))
      ->capture_default_str();
  app.add_option("--plan-cache-size", options.engine.plan_cache_size,
                 "Input shapes for each model whose plans are kept; 0: interpret every run")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--jit-disable", options.engine.disabled_passes, "Passes to disable, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--jit-limit", options.engine.pass_limits, "PASS:N: the pass makes at most N changes; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--max-queue-size", options.max_queue_size, "Requests that may be queued for each model")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  app.add_option("--exit-delay-secs", options.exit_delay_secs,
                 "Seconds after SIGTERM in which requests are still served, but health reports not ready, so that load "
                 "balancers stop sending; a second SIGTERM ends this time")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--exit-timeout-secs", options.exit_timeout_secs,
                 "Seconds to finish requests after SIGTERM and the delay")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_option("--ready-file", options.ready_file, "Write the addresses here as JSON once ready");

  app.add_option("--training-dir", options.training_folder,
                 "Enable training jobs, and store them and their checkpoints in this folder");
  app.add_option("--training-data", options.training_data, "Folder with the files that jobs may train on");
  app.add_option("--training-jobs", options.training_jobs, "Jobs that run at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--training-threads", options.training_threads,
                 "Threads of a job that sets none; 0: half of the cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--training-nice", options.training_nice,
                 "Nice value of the threads of jobs; 19: they only get what serving leaves, 0: an equal share")
      ->check(CLI::Range(0, 19))
      ->capture_default_str();
  app.add_option("--training-plans", options.training_plans,
                 "Plan repeated steps of jobs: exact gives the same bits as interpreting, fused is faster and may "
                 "differ by rounding, off interprets all")
      ->check(CLI::IsMember({"off", "exact", "fused"}))
      ->capture_default_str();
  app.add_option("--training-memory", options.training_memory_bytes,
                 "Maximum memory of a job's tensors, such as 2GB; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_option("--training-max-upload", options.training_upload_bytes,
                 "Largest model or file of data that a client may upload, such as 4GB; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
  app.add_option("--training-transfer-timeout-secs", options.training_transfer_timeout_secs,
                 "Seconds until an upload without a message ends, and a download of which nothing is taken")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  add_join_options(app, options.join);

  add_infer_options(app, options.infer);
  add_log_options(app, options.log);
  add_trace_options(app, options.trace);
  add_capture_options(app, options.capture);
  add_cache_options(app, options.cache);
  add_rate_limit_options(app, options.rate_limit);
  add_host_policy_options(app, options.host_policy);
  add_triton_options(app, options.triton);
}

void validate(const ServerOptions& options) {
  validate(options.network);
  validate(options.repository);
  validate(options.trace);
  validate(options.join);
  check(!options.join.is_wanted() || !options.training_folder.empty(), "--join: needs --training-dir");
  validate(options.cache);
  parse_rate_limits(options.rate_limit);
  parse_host_policies(options.host_policy);
}

}  // namespace tensord::server
