#include "server/daemon/daemon.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "server/executor/strategies/response_cache.h"
#include "server/http/server.h"
#include "server/rest/control.h"
#include "server/rest/handler.h"
#include "server/scheduler/rate_limiter.h"
#include "server/training/training_service.h"
#include "server/training/weights_update.h"
#include "server/transport/access/http_access.h"
#include "server/transport/grpc/heap_trimmer.h"
#include "server/transport/grpc_server.h"
#include "server/transport/hosts/node_agent.h"
#include "server/web/routes.h"

namespace tensord::server {
namespace {

Repository::Options repository_options(const ServerOptions& options, RateLimiter* rate_limiter, ResponseCache* cache) {
  const RepositoryOptions& given = options.repository;
  return {.roots = given.model_repositories,
          .only = given.load_models,
          .mode = parse_control_mode(given.model_control_mode),
          .poll_interval_ms = int64_t{given.poll_secs} * 1000,
          .loads_on_demand = given.load_on_demand,
          .memory_limit_bytes = given.memory_limit_bytes,
          .override_limit_bytes = given.override_limit_bytes,
          .config_name = given.config_name,
          .needs_complete_configs = !given.completes_configs,
          .allows_labels = given.allow_version_labels,
          .copies_archives = given.copies_archives(),
          .workers = options.workers,
          .threads_per_worker = options.threads,
          .cores = options.share_cores ? available_cores() : 0,
          .max_queue_size = options.max_queue_size,
          .load_threads = std::min(available_cores(), given.load_threads),
          .load_timeout_ns = int64_t{given.load_timeout_secs} * 1'000'000'000,
          .reload_nice = given.reload_nice,
          .host_policies = parse_host_policies(options.host_policy),
          .rate_limiter = rate_limiter,
          .cache = cache,
          .write_weights = write_with_weights};
}

std::unique_ptr<RateLimiter> make_rate_limiter(const RateLimitOptions& options) {
  if (options.mode == "off") return nullptr;
  RateLimiter::Limits limits;
  RateLimiter::DeviceLimits device_limits;
  for (const auto& resource : parse_rate_limits(options)) {
    if (resource.device) {
      device_limits[{resource.name, *resource.device}] = resource.count;
    } else {
      limits[{resource.name, resource.is_global}] = resource.count;
    }
  }
  return std::make_unique<RateLimiter>(std::move(limits), std::move(device_limits));
}

std::unique_ptr<ResponseCache> make_cache(const ServerOptions& options) {
  const uint64_t max_bytes = options.cache.max_bytes();
  return max_bytes > 0 ? std::make_unique<ResponseCache>(max_bytes) : nullptr;
}

// A second thread serves while the first is stalled.
constexpr int kMinDefaultThreads = 2;

GrpcServer::Options grpc_options(const ServerOptions& options) {
  const int threads = options.grpc_infer_thread_count;
  return {.address = options.grpc_address,
          .port = options.grpc_port,
          .threads = threads > 0 ? threads : std::max(kMinDefaultThreads, available_cores()),
          .network = options.network};
}

std::unique_ptr<TrainingService> make_training(const ServerOptions& options, Repository& repository, Metrics& metrics,
                                               const std::string& version) {
  if (options.training_folder.empty()) return nullptr;
  TrainingService::Options training;
  training.folder = options.training_folder;
  training.data_folder = options.training_data;
  training.concurrent_jobs = options.training_jobs;
  training.threads = options.training_threads;
  training.nice = options.training_nice;
  training.plans = options.training_plans;
  training.memory_bytes = options.training_memory_bytes;
  training.max_upload_bytes = options.training_upload_bytes;
  training.transfer_timeout_secs = options.training_transfer_timeout_secs;
  training.host = host_name_of(options.join);
  training.interface = options.join.interface;
  training.version = version;
  return std::make_unique<TrainingService>(std::move(training), repository, metrics);
}

// Returns null if this daemon joins no other.
std::unique_ptr<NodeAgent> make_node_agent(const ServerOptions& options, const std::string& version) {
  if (!options.join.is_wanted()) return nullptr;
  const std::string folder = options.training_folder;
  return std::make_unique<NodeAgent>(NodeAgent::Options{.join = options.join,
                                                        .version = version,
                                                        .training_folder = folder,
                                                        .ranks = {.folder = folder + "/hosted",
                                                                  .data_folder = options.training_data,
                                                                  .host = host_name_of(options.join),
                                                                  .interface = options.join.interface,
                                                                  .nice = options.training_nice,
                                                                  .memory_bytes = options.training_memory_bytes,
                                                                  .processes = TrainingService::max_processes()}});
}

std::string join_address(const std::string& address, int port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return is_v6 ? concat("[", address, "]:", port) : concat(address, ":", port);
}

// Probes have a port with its own thread and connections, so that nothing delays them.
constexpr size_t kProbeConnections = 1024;

HttpServer::Options metrics_port_options(const ServerOptions& options) {
  const NetworkOptions& network = options.network;
  return {.purpose = "metrics",
          .address = options.metrics_address,
          .port = options.metrics_port,
          .threads = 1,
          .limits = {.connections = kProbeConnections,
                     .per_address = network.http_max_address_connections,
                     .heads_per_address = network.http_max_address_heads}};
}

HttpServer::Options http_port_options(const ServerOptions& options, RequestLimits& limits) {
  const NetworkOptions& network = options.network;
  return {.purpose = "HTTP",
          .address = network.http_address,
          .port = network.http_port,
          .threads = network.http_threads,
          .limits = {.connections = network.http_max_connections,
                     .per_address = network.http_max_address_connections,
                     .heads_per_address = network.http_max_address_heads},
          .quota = [&limits](uint64_t size_bytes) { return limits.share(size_bytes); },
          .origins = AllowedOrigins(network.http_allowed_origins)};
}

// Renames a complete file into place, because readers wait for the file to appear.
void write_atomically(const std::string& path, const std::string& text) {
  const std::string temporary = concat(path, ".", getpid(), ".tmp");
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    fail(ErrorCode::kUnavailable, "cannot write the ready file ", path);
  }
}

// Of "127.0.0.1:8001", "[::1]:8001" or "unix:/run/grpc".
ServerPlace grpc_place(const std::string& address, int port) {
  if (port == 0) return {address.substr(address.find(':') + 1), 0};
  const std::string host = address.substr(0, address.rfind(':'));
  return {host.starts_with('[') ? host.substr(1, host.size() - 2) : host, port};
}

}  // namespace

struct Daemon::Impl {
  Impl(const ServerOptions& options, ModelFactory factory, const std::string& version)
      : options(options),
        metrics(version),
        tracer(options.trace),
        capture(options.capture),
        rate_limiter(make_rate_limiter(options.rate_limit)),
        cache(make_cache(options)),
        repository(repository_options(options, rate_limiter.get(), cache.get()), std::move(factory), metrics),
        training(make_training(options, repository, metrics, version)),
        state{.repository = repository,
              .metrics = metrics,
              .tracer = tracer,
              .capture = capture,
              .id = options.id,
              .version = version,
              .strict_readiness = options.strict_readiness,
              .training = training.get(),
              .access = AccessPolicy::make(options.network),
              .limits = RequestLimits(static_cast<uint64_t>(options.network.max_requests),
                                      options.network.memory_quota_bytes, options.network.max_request_bytes()),
              .shared_memory =
                  SharedRegions(options.network.allow_client_shm,
                                [this](uint64_t bytes) {
                                  return std::make_shared<const RequestLimits::Admission>(state.limits.hold(bytes));
                                }),
              .forwarded_headers = HeaderForward(options.infer.header_forward_pattern),
              .forwarded_http_headers =
                  HeaderForward(options.infer.http_header_forward_pattern, "--http-header-forward-pattern"),
              .http_max_input_bytes = options.network.http_max_input_bytes,
              .stream_max_requests = options.infer.stream_max_requests},
        grpc(grpc_options(options), state) {
    if (options.metrics_compat == "triton") metrics.add_triton_names();
    if (options.allow_metrics) {
      metrics_http = std::make_unique<HttpServer>(metrics_port_options(options), web_handler);
      open_metrics_port = metrics_http->port();
    }
    if (options.network.allow_http) {
      const HttpServer::Options http_options = http_port_options(options, state.limits);
      rest_handler = std::make_unique<RestHandler>(state, web_handler, http_options.quota);
      http = std::make_unique<HttpServer>(http_options, *rest_handler);
      open_http_port = http->port();
    }
    tracer.set_places(grpc_place(grpc.address(), grpc.port()),
                      http ? ServerPlace{options.network.http_address, http->port()} : ServerPlace());
  }

  // For the metrics port.
  std::optional<HttpAnswer> refuse(const HttpHead& head) const {
    if (is_model_status_path(head.path)) return refuse_call(state.access, head, CallGroup::kModelConfig);
    return options.network.http_access_tokens ? refuse_http(state.access, head) : std::nullopt;
  }

  WebSources::Ports ports() const {
    return {.grpc = grpc.address(),
            .http = open_http_port,
            .metrics = open_metrics_port,
            .has_tls = options.network.use_tls,
            .has_tokens = state.access.needs_token(CallGroup::kInference)};
  }

  const ServerOptions options;
  Metrics metrics;
  Tracer tracer;
  RequestCapture capture;
  std::unique_ptr<RateLimiter> rate_limiter;  // null if off
  std::unique_ptr<ResponseCache> cache;       // null if off
  Repository repository;
  std::unique_ptr<TrainingService> training;  // null if off
  ServerState state;
  const WebSources web{
      .repository = repository,
      .metrics = metrics,
      .training = training.get(),
      .version = state.version,
      .is_ready = [this] { return state.is_ready(); },
      .is_leaving = [this] { return state.is_leaving.load(); },
      .started_unix_ms = now_ms(),
      .has_status_page = options.network.status_page,
      .ports = [this] { return ports(); },
      .describe = [this](const std::string& name,
                         const std::string& version) { return describe_served(state, name, version); }};
  WebHandler web_handler{web, [this](const HttpHead& head) { return refuse(head); }};
  // Ends training before `state`: batches that jobs have not consumed count as requests of `state`.
  struct TrainingEnd {
    std::unique_ptr<TrainingService>& training;
    ~TrainingEnd() { training.reset(); }
  } training_end{training};
  HeapTrimmer heap_trimmer{state.limits};
  std::atomic<int> open_http_port{0}, open_metrics_port{0};  // 0: off, or not open yet
  GrpcServer grpc;                                           // its calls use the members above
  std::unique_ptr<RestHandler> rest_handler;
  // Null if off. Declared last: they use all other members.
  std::unique_ptr<HttpServer> metrics_http, http;
  std::unique_ptr<NodeAgent> node_agent;  // null if this daemon joins no other, or before load()
};

Daemon::Daemon(const ServerOptions& options, ModelFactory factory, const std::string& version)
    : impl_(std::make_unique<Impl>(options, std::move(factory), version)) {
  log(LogLevel::kInfo, "listening",
      {{"grpc", grpc_address()},
       {"metrics", metrics_port() ? join_address(options.metrics_address, metrics_port()) : "off"},
       {"http", http_port() ? join_address(options.network.http_address, http_port()) : "off"}});
}

Daemon::~Daemon() = default;

void Daemon::load() {
  impl_->repository.load_all();
  if (impl_->options.exit_on_error && !impl_->repository.is_all_ready()) {
    fail(ErrorCode::kFailedPrecondition, "--exit-on-error: a model cannot be served; the log says which and why");
  }
  if (impl_->training) impl_->training->start();
  impl_->node_agent = make_node_agent(impl_->options, impl_->state.version);
  const ServerOptions& options = impl_->options;
  log(LogLevel::kInfo, "models loaded", {{"all_ready", impl_->repository.is_all_ready()}});
  if (options.ready_file.empty()) return;
  nlohmann::json ready{{"grpc", grpc_address()}, {"metrics", nullptr}, {"pid", getpid()}};
  if (metrics_port() != 0) ready["metrics"] = join_address(options.metrics_address, metrics_port());
  if (http_port() != 0) ready["http"] = join_address(options.network.http_address, http_port());
  write_atomically(options.ready_file, ready.dump() + "\n");
}

int Daemon::grpc_port() const { return impl_->grpc.port(); }
int Daemon::metrics_port() const { return impl_->metrics_http ? impl_->metrics_http->port() : 0; }
int Daemon::http_port() const { return impl_->http ? impl_->http->port() : 0; }

std::string Daemon::grpc_address() const { return impl_->grpc.address(); }

void Daemon::reload() {
  const bool polls = impl_->repository.mode() == ControlMode::kPoll;
  log(LogLevel::kInfo, polls ? "reload: looking at the model repository" : "reload: models change by calls only");
  if (polls) impl_->repository.poll();
}

void Daemon::announce_stop() { impl_->state.is_leaving = true; }

void Daemon::stop(int64_t timeout_ms) {
  announce_stop();
  impl_->state.is_draining = true;
  // Jobs write their checkpoints while requests drain.
  Thread training("stop-training", [this] {
    if (impl_->node_agent) impl_->node_agent->stop();
    if (impl_->training) impl_->training->stop();
  });
  // Answers requests that wait for a model to load.
  Thread repository("stop-models", [this] { impl_->repository.stop(); });
  Thread http("stop-http", [this, timeout_ms] {
    if (impl_->http) impl_->http->stop(timeout_ms);
  });
  impl_->grpc.shut_down(timeout_ms);
  http.join();
  repository.join();
  training.join();
  impl_->tracer.stop();
  impl_->capture.stop();
}

}  // namespace tensord::server
