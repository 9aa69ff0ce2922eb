#include "connection.h"

#include <algorithm>
#include <climits>

#include "tensord/client/error.h"

namespace tensord::client {
namespace {

// gRPC adapts the read size to the connection's traffic, so that messages of several MB soon arrive in one slice and
// need no copy.
constexpr int kMinReadChunkBytes = 64 << 10;
constexpr int kMaxReadChunkBytes = 16 << 20;

std::string seconds(std::chrono::milliseconds time) {
  const std::string text = std::to_string(time.count() % 1000);
  return std::to_string(time.count() / 1000) + "." + std::string(3 - text.size(), '0') + text + "s";
}

// Streams cannot be retried, because the messages sent on them are gone.
std::string retry_policy(const RetryOptions& retry) {
  static constexpr const char* kMethods[] = {"ServerLive",     "ServerReady",     "ModelReady",
                                             "ServerMetadata", "ModelMetadata",   "ModelInfer",
                                             "ModelConfig",    "ModelStatistics", "RepositoryIndex",
                                             "TraceSetting",   "LogSettings",     "SystemSharedMemoryStatus"};
  std::string names;
  for (const char* method : kMethods) {
    names += std::string(names.empty() ? "" : ",") + R"({"service":"inference.GRPCInferenceService","method":")" +
             method + "\"}";
  }
  for (const char* method : {"GetJob", "ListJobs"}) {
    names += std::string(R"(,{"service":"tensord.training.v1.TrainingService","method":")") + method + "\"}";
  }
  return R"("methodConfig":[{"name":[)" + names + R"(],"retryPolicy":{"maxAttempts":)" +
         std::to_string(retry.max_attempts) + R"(,"initialBackoff":")" + seconds(retry.initial_backoff) +
         R"(","maxBackoff":")" + seconds(retry.max_backoff) +
         R"(","backoffMultiplier":2.0,"retryableStatusCodes":["UNAVAILABLE"]}}])";
}

std::shared_ptr<grpc::ChannelCredentials> credentials(const ClientOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = options.tls->root_certificates,
                               .pem_private_key = options.tls->private_key,
                               .pem_cert_chain = options.tls->certificate_chain});
}

grpc_compression_algorithm algorithm(Compression compression) {
  return compression == Compression::kGzip ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_DEFLATE;
}

int milliseconds(std::chrono::milliseconds time) {
  return static_cast<int>(std::clamp<int64_t>(time.count(), 0, INT_MAX));
}

// gRPC aborts the process on invalid headers.
void check_header(const std::string& name, const std::string& value) {
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
  if (!is_name) throw InvalidArgumentError("header '" + name + "': names are of a-z, 0-9, '_', '-' and '.'");
  const bool is_binary = name.ends_with("-bin");
  if (!is_binary && !std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c <= 0x7e; })) {
    throw InvalidArgumentError("header '" + name + "': its value has characters that are not visible ASCII");
  }
}

void check_options(const ClientOptions& options) {
  for (const auto& [name, value] : options.headers) check_header(name, value);
  if (!std::all_of(options.token.begin(), options.token.end(), [](char c) { return c > 0x20 && c <= 0x7e; })) {
    throw InvalidArgumentError("token: has characters that are not visible ASCII");
  }
  if (options.retry.max_attempts < 1 || options.retry.max_attempts > 5) {
    throw InvalidArgumentError("retry.max_attempts: must be from 1 to 5, got " +
                               std::to_string(options.retry.max_attempts));
  }
  if (options.retry.initial_backoff.count() < 1 || options.retry.max_backoff.count() < 1) {
    throw InvalidArgumentError("retry: the backoffs must be a millisecond at least");
  }
}

}  // namespace

void check_status(const grpc::Status& status) {
  if (!status.ok()) throw_error(static_cast<StatusCode>(status.error_code()), status.error_message());
}

Connection::Connection(std::string address, ClientOptions options)
    : address_(std::move(address)), options_(std::move(options)) {
  check_options(options_);
  if (address_.starts_with("http://") || address_.starts_with("https://")) {
    throw InvalidArgumentError("address: the protocol is gRPC, not HTTP: HOST:PORT, got '" + address_ + "'");
  }
  channel_ = make_channel(options_.retry.max_attempts > 1);
}

std::shared_ptr<grpc::Channel> Connection::make_channel(bool with_retries) const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, kMinReadChunkBytes);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kMinReadChunkBytes);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadChunkBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, with_retries ? 1 : 0);
  // The retry buffer holds references to the caller's tensors, not copies.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, INT_MAX);
  std::string config;
  if (with_retries) config = retry_policy(options_.retry);
  if (options_.round_robin)
    config += std::string(config.empty() ? "" : ",") + R"("loadBalancingConfig":[{"round_robin":{}}])";
  if (!config.empty()) arguments.SetServiceConfigJSON("{" + config + "}");
  if (options_.keepalive.time.count() > 0) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(options_.keepalive.time));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(options_.keepalive.timeout));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, options_.keepalive.without_calls ? 1 : 0);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  if (options_.tls && !options_.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options_.tls->server_name);
  }
  return grpc::CreateCustomChannel(address_, credentials(options_), arguments);
}

std::shared_ptr<grpc::Channel> Connection::channel_without_retries() {
  if (options_.retry.max_attempts == 1) return channel_;
  const std::lock_guard lock(mutex_);
  if (!plain_channel_) plain_channel_ = make_channel(false);
  return plain_channel_;
}

void Connection::prepare(grpc::ClientContext& context, const CallOptions& options, bool is_long) const {
  for (const auto& [name, value] : options_.headers) {
    if (!options.headers.contains(name)) context.AddMetadata(name, value);
  }
  for (const auto& [name, value] : options.headers) {
    check_header(name, value);
    context.AddMetadata(name, value);
  }
  if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
  const std::chrono::milliseconds by_default = is_long ? std::chrono::milliseconds(0) : options_.timeout;
  const std::chrono::milliseconds timeout = options.timeout.value_or(by_default);
  if (timeout.count() > 0) context.set_deadline(std::chrono::system_clock::now() + timeout);
  context.set_wait_for_ready(options_.wait_for_ready);
  if (options_.compression != Compression::kNone) context.set_compression_algorithm(algorithm(options_.compression));
}

}  // namespace tensord::client
