#include "server/config/triton_options.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "core/base/log.h"

namespace tensord::server {
namespace {

struct TritonFlag {
  const char* name;
  const char* reason;  // why it has no effect
};

constexpr TritonFlag kFlags[] = {
    {"--allow-cpu-metrics", "CPU metrics are always provided"},
    {"--allow-gpu-metrics", "GPU metrics are always provided"},
    {"--backend-config", "there are no backends to configure; --threads and --workers configure the engine"},
    {"--backend-directory", "there are no backends to load"},
    {"--buffer-manager-thread-count", "no separate threads copy inputs into batches"},
    {"--cache-directory", "the response cache is built in; see --cache-config"},
    {"--cuda-memory-pool-byte-size", "device memory is allocated on demand"},
    {"--cuda-virtual-address-size", "device memory is allocated on demand"},
    {"--enable-peer-access", "copies between devices take the way that the driver has"},
    {"--grpc-infer-allocation-pool-size", "messages are allocated on demand"},
    {"--grpc-max-response-pool-size", "messages are allocated on demand"},
    {"--metrics-config", "the set of series is fixed"},
    {"--metrics-interval-ms", "metrics are collected when they are scraped"},
    {"--min-supported-compute-capability", "a device is used if a model's configuration names it"},
    {"--model-load-retry-count", "a load that may succeed later is always retried"},
    {"--pinned-memory-pool-byte-size", "host memory is pinned on demand"},
    {"--repoagent-directory", "there are no repository agents"},
    {"--trace-log-frequency", "a trace file is written in one piece"},
};

// Flags for which only one value is supported.
struct FixedFlag {
  const char* name;
  bool value;
  const char* reason;
};

constexpr FixedFlag kFixedFlags[] = {
    {"--allow-grpc", true, "gRPC cannot be switched off"},
    {"--allow-sagemaker", false, "there is no SageMaker endpoint"},
    {"--allow-vertex-ai", false, "there is no Vertex AI endpoint"},
    {"--model-namespacing", false, "model names are unique across all repositories"},
    {"--reuse-grpc-port", false, "ports cannot be shared"},
    {"--reuse-http-port", false, "ports cannot be shared"},
};

constexpr const char* kGroup = "Triton's, without a meaning here";

}  // namespace

void add_triton_options(CLI::App& app, TritonOptions& options) {
  for (const TritonFlag& flag : kFlags) {
    app.add_option_function<std::vector<std::string>>(
           flag.name, [&options, &flag](const std::vector<std::string>&) { options.given.emplace_back(flag.name); },
           flag.reason)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(kGroup);
  }
  for (const FixedFlag& flag : kFixedFlags) {
    app.add_option_function<bool>(
           flag.name,
           [&options, &flag](bool value) {
             if (value != flag.value) throw CLI::ValidationError(flag.name, flag.reason);
             options.given.emplace_back(flag.name);
           },
           flag.reason)
        ->group(kGroup);
  }
}

void log_triton_options(const TritonOptions& options) {
  for (const std::string& name : options.given) {
    const auto found = std::ranges::find(kFlags, name, &TritonFlag::name);
    if (found == std::end(kFlags)) continue;
    log(LogLevel::kInfo, "a Triton flag has no effect", {{"flag", name}, {"reason", found->reason}});
  }
}

}  // namespace tensord::server
