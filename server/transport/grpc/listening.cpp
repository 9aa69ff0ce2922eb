#include "server/transport/grpc/listening.h"

#include <grpc/impl/codegen/grpc_types.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/http/listener.h"
#include "server/transport/grpc/tls_credentials.h"

namespace tensord::server {
namespace {

// gRPC adapts the read size to the connection's traffic: messages of several MB soon arrive in one piece, and an idle
// connection holds no large buffer (1.1 MB if reads began with the largest size).
constexpr int kMinReadChunkBytes = 64 << 10;
constexpr int kMaxReadChunkBytes = 16 << 20;

// A client that connects and sends nothing is dropped after this time; shutdown waits that long for it.
constexpr int kHandshakeTimeoutMs = 10'000;

// Per call, in total. Calls with more end with RESOURCE_EXHAUSTED.
constexpr int kMaxMetadataBytes = 16 << 10;

grpc_compression_level compression_level(const std::string& name) {
  static const std::map<std::string, grpc_compression_level> kLevels{
      {"low", GRPC_COMPRESS_LEVEL_LOW}, {"medium", GRPC_COMPRESS_LEVEL_MED}, {"high", GRPC_COMPRESS_LEVEL_HIGH}};
  return kLevels.at(name);
}

// Throws if another server still listens on the socket, which must not be removed then.
void check_unused(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_used = connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(client);
  if (is_used) fail(ErrorCode::kUnavailable, "cannot listen for gRPC on unix:", path, ": another server does");
  struct stat status {};
  check(lstat(path.c_str(), &status) != 0 || S_ISSOCK(status.st_mode), "--grpc-unix-socket: ", path,
        " is there and is not a socket");
}

// A connection takes one or two descriptors. The usual soft limit of 1024 exists for programs that use select().
void raise_file_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;  // a sandbox may forbid it
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// Limits connections to the available descriptors, minus a reserve for models, regions and logs.
int connections_by_files(int wanted) {
  constexpr rlim_t kOtherFiles = 256;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
  const rlim_t possible = files.rlim_cur - std::min(kOtherFiles, files.rlim_cur / 2);
  const auto taken = static_cast<int>(std::min(possible, static_cast<rlim_t>(wanted)));
  if (taken != wanted) {
    log(LogLevel::kWarning, "fewer connections are taken: the process may not open more files",
        {{"connections", taken}, {"open_files", files.rlim_cur}, {"wanted", wanted}});
  }
  return taken;
}

ConnectionGuard::Options guard_options(const NetworkOptions& options) {
  raise_file_limit();
  ConnectionGuard::Options guard;
  guard.floods.open_streams = static_cast<uint32_t>(options.max_streams);
  guard.floods.resets = 3.0 * options.max_streams;
  guard.floods.all_open_streams = static_cast<uint32_t>(options.max_all_streams);
  guard.max_connections = connections_by_files(options.max_connections > 0 ? options.max_connections : INT_MAX);
  guard.max_per_address = options.max_connections_per_address;
  guard.longest_wait_ns = int64_t{options.flood_wait_secs} * 1'000'000'000;
  return guard;
}

void set_keepalive(grpc::ServerBuilder& builder, const NetworkOptions& options) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options.keepalive_time_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.keepalive_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, options.keepalive_permit_without_calls ? 1 : 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, options.max_pings_without_data);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, options.min_ping_interval_ms);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, options.max_ping_strikes);
  if (options.max_connection_age_ms != 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, options.max_connection_age_ms);
  }
  if (options.max_connection_age_grace_ms != 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, options.max_connection_age_grace_ms);
  }
}

}  // namespace

Listening::Listening(const NetworkOptions& options, const std::string& address, int port, Metrics& metrics)
    : options_(options),
      address_(address),
      inherited_(take_inherited_sockets()),
      guard_(ConnectionGuard::make(guard_options(options))) {
  if (options_.use_tls || options_.use_mutual_tls) {
    certificates_ =
        std::make_shared<Certificates>(Certificates::Files{options_.server_cert, options_.server_key,
                                                           options_.use_mutual_tls ? options_.root_cert : ""},
                                       std::chrono::seconds(options_.tls_reload_secs),
                                       [&metrics](bool is_taken) { metrics.count_certificates(is_taken); });
    credentials_ = make_tls_credentials(certificates_, options_.use_mutual_tls);
  } else {
    credentials_ = grpc::InsecureServerCredentials();
  }
  std::vector<int> tcp = inherited_.tcp, unix_domain = inherited_.unix_domain;
  if (inherited_.empty()) {
    if (!options_.unix_socket.empty()) check_unused(options_.unix_socket);
    if (!options_.is_unix_socket_only) {
      Listeners listeners = bind_listeners(address, port);
      tcp = std::move(listeners.files);
      if (tcp.empty()) {
        fail(ErrorCode::kUnavailable, "cannot listen for gRPC on ", address, ":", port, ": ", listeners.reason);
      }
    }
  }
  if (!tcp.empty()) tcp_ = std::make_unique<Acceptor>(std::move(tcp), guard_);
  if (inherited_.empty() && !options_.unix_socket.empty()) {
    unix_domain = {
        listen_unix(options_.unix_socket, static_cast<mode_t>(std::stoi(options_.unix_socket_mode, nullptr, 8)))};
    owns_unix_socket_ = true;
  }
  if (!unix_domain.empty()) unix_ = std::make_unique<Acceptor>(std::move(unix_domain), guard_);
}

Listening::~Listening() { stop(); }

std::string Listening::address() const {
  if (!tcp_) return "unix:" + (inherited_.empty() ? options_.unix_socket : inherited_.unix_path);
  const std::string host = inherited_.empty() ? address_ : inherited_.tcp_host;
  return host.find(':') != std::string::npos ? concat("[", host, "]:", port()) : concat(host, ":", port());
}

void Listening::configure(grpc::ServerBuilder& builder) {
  if (tcp_) tcp_->configure(builder, credentials_);
  // The socket file's permissions control access.
  if (unix_) unix_->configure(builder, grpc::InsecureServerCredentials());
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(options_.max_streams));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.max_request_bytes()));
  // The calls decompress messages themselves, within their limits.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetMaxSendMessageSize(static_cast<int>(options_.max_message_bytes));
  builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kMinReadChunkBytes);
  builder.AddChannelArgument(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kMinReadChunkBytes);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadChunkBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  set_keepalive(builder, options_);
  if (!options_.allow_compressed_requests) {
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  }
  if (options_.response_compression != "none") {
    builder.SetDefaultCompressionLevel(compression_level(options_.response_compression));
  }
  if (options_.memory_quota_bytes != 0) {
    builder.SetResourceQuota(grpc::ResourceQuota("clients").Resize(options_.memory_quota_bytes));
  }
}

std::unique_ptr<grpc::Server> Listening::start(grpc::ServerBuilder& builder) {
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) fail(ErrorCode::kUnavailable, "cannot serve gRPC on ", address());
  if (tcp_) tcp_->start();
  if (unix_) unix_->start();
  return server;
}

void Listening::stop() {
  if (tcp_) tcp_->stop();
  if (unix_) unix_->stop();
  if (std::exchange(owns_unix_socket_, false)) unlink(options_.unix_socket.c_str());
}

}  // namespace tensord::server
