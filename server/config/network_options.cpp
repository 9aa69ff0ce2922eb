#include "server/config/network_options.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/memory_limit.h"

namespace tensord::server {
namespace {

constexpr uint64_t kMinQuota = uint64_t{64} << 20;

void add_security_options(CLI::App& app, NetworkOptions& options) {
  app.add_option("--grpc-use-ssl", options.use_tls, "Serve gRPC over TLS")->capture_default_str();
  app.add_option("--grpc-use-ssl-mutual", options.use_mutual_tls, "Serve gRPC over TLS to clients with a certificate")
      ->capture_default_str();
  app.add_option("--grpc-server-cert", options.server_cert, "PEM file with the server's certificates");
  app.add_option("--grpc-server-key", options.server_key, "PEM file with the server's private key");
  app.add_option("--grpc-root-cert", options.root_cert, "PEM file with the certificate authorities of clients");
  app.add_option("--grpc-ssl-reload-secs", options.tls_reload_secs,
                 "Seconds between checks of the PEM files; changed ones are used for new connections")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--grpc-restricted-protocol", options.restricted_protocols,
                 "GROUP,…:KEY=VALUE: calls in these groups require the header triton-grpc-protocol-KEY with this "
                 "value. Groups: health, metadata, inference, model-repository, shared-memory, model-config, "
                 "statistics, trace, logging, training, training-hosts; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--access-tokens", options.access_tokens,
                 "File with lines GROUP,… TOKEN (or: all TOKEN). Every call except health then requires the header "
                 "authorization: Bearer TOKEN with a token for its group. Reloaded when it changes");
  app.add_option("--allow-client-shm", options.allow_client_shm,
                 "Allow clients to register shared memory: every client can then read and write any object that the "
                 "server may open")
      ->capture_default_str();
}

void add_connection_options(CLI::App& app, NetworkOptions& options) {
  const auto milliseconds = CLI::Range(0, INT_MAX);
  app.add_option("--grpc-keepalive-time", options.keepalive_time_ms, "Milliseconds between pings of idle connections")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-keepalive-timeout", options.keepalive_timeout_ms,
                 "Milliseconds to wait for the response to a ping")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-keepalive-permit-without-calls", options.keepalive_permit_without_calls,
                 "Send and accept pings on connections without calls")
      ->capture_default_str();
  app.add_option("--grpc-http2-max-pings-without-data", options.max_pings_without_data,
                 "Pings between two data frames; 0: no limit")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option(
         "--grpc-http2-min-recv-ping-interval-without-data", options.min_ping_interval_ms,
         "Minimum of milliseconds between a client's pings without data; pings sooner than that count as strikes")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-http2-max-ping-strikes", options.max_ping_strikes,
                 "Ping strikes after which a connection is closed; 0: no limit")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-max-connection-age", options.max_connection_age_ms,
                 "Milliseconds after which a connection is asked to close; 0: never")
      ->check(milliseconds);
  app.add_option("--grpc-max-connection-age-grace", options.max_connection_age_grace_ms,
                 "Milliseconds for its calls to finish; 0: no limit")
      ->check(milliseconds);
  app.add_option("--grpc-infer-response-compression-level", options.response_compression,
                 "Compression level of responses, for clients that support it: none, low, medium, high")
      ->check(CLI::IsMember({"none", "low", "medium", "high"}))
      ->capture_default_str();
  app.add_option("--grpc-compressed-requests", options.allow_compressed_requests,
                 "Accept compressed requests; their decompressed size counts")
      ->capture_default_str();
}

void add_limits(CLI::App& app, NetworkOptions& options) {
  const auto bytes = CLI::AsSizeValue(/*kb_is_1000=*/false);
  app.add_option("--grpc-max-message-size", options.max_message_bytes, "Largest message received or sent, such as 64MB")
      ->transform(bytes)
      ->capture_default_str();
  app.add_option("--grpc-max-connections", options.max_connections,
                 "Maximum of connections, less if the process's file limit is lower; beyond it the connection that is "
                 "idle for longest is closed, or the new one if none is idle; 0: no limit")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--grpc-max-connections-per-address", options.max_connections_per_address,
                 "The same for one address (IPv6: one /64 network); 0: no limit")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--grpc-max-streams", options.max_streams,
                 "Maximum of open calls on a connection: clients are told and queue more; a connection that exceeds it "
                 "is closed")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--grpc-max-all-streams", options.max_all_streams,
                 "Maximum of open calls on all connections; beyond it the connection with the most calls is closed")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--grpc-flood-wait-secs", options.flood_wait_secs,
                 "An address whose connection was closed for flooding may not reconnect for 1 s, doubling each time, "
                 "up to this limit; 0: no wait, for example if all clients share a proxy's address")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_option("--grpc-max-requests", options.max_requests,
                 "Maximum of inference requests in progress, of all clients and models; more are refused; 0: no limit")
      ->check(CLI::Range(0, INT_MAX))
      ->capture_default_str();
  app.add_option("--client-memory-quota,--grpc-memory-quota", options.memory_quota_bytes,
                 "Memory that the daemon may hold for all clients together, over gRPC and HTTP, such as 4GB: requests, "
                 "their tensors, unread responses; more requests are refused, and clients are throttled before that; "
                 "0: no limit; default: half of the process's memory limit. The second name is deprecated")
      ->transform(bytes);
}

void add_http_options(CLI::App& app, NetworkOptions& options) {
  app.add_option("--allow-http", options.allow_http,
                 "Serve the KServe v2 REST protocol, health and status on the HTTP port; the metrics port always has "
                 "health and status")
      ->capture_default_str();
  app.add_option("--http-address", options.http_address, "Address to listen on for HTTP")->capture_default_str();
  app.add_option("--http-port", options.http_port, "Port for HTTP; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--http-access-tokens", options.http_access_tokens,
                 "Require a token of --access-tokens for the group statistics for metrics and the status page, as "
                 "'Bearer TOKEN' or as a password; health needs none")
      ->capture_default_str();
  app.add_option("--status-page", options.status_page, "Serve the status page at / of the HTTP and metrics ports")
      ->capture_default_str();
  app.add_option("--http-restricted-api", options.http_restricted_apis,
                 "GROUP,…:HEADER=VALUE: calls in these groups over HTTP require the header with this value. Groups and "
                 "defaults are those of --grpc-restricted-protocol; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--http-allow-origin", options.http_allowed_origins,
                 "An origin whose pages may call the HTTP port from a browser, such as https://app.example.org, or *; "
                 "may be repeated")
      ->allow_extra_args(false);
  app.add_option("--http-max-input-size", options.http_max_input_bytes,
                 "Largest JSON, tensor, raw input or decompressed body of an HTTP request, such as 64MB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
  app.add_option("--http-thread-count", options.http_threads, "Threads that serve the HTTP port's connections")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  const auto count = CLI::Range(0, 1 << 20);
  app.add_option("--http-max-connections", options.http_max_connections,
                 "Maximum of HTTP connections; a new one replaces the one that has been idle for longest; 0: no limit")
      ->check(count)
      ->capture_default_str();
  app.add_option("--http-max-address-connections", options.http_max_address_connections,
                 "Of these, connections of one address (IPv6: one /64 network), on the metrics port too. Unix sockets "
                 "do not count; 0: no limit")
      ->check(count)
      ->capture_default_str();
  app.add_option("--http-max-address-heads", options.http_max_address_heads,
                 "Of these, connections with incomplete request headers; a new one replaces the oldest; 0: no limit")
      ->check(count)
      ->capture_default_str();
}

}  // namespace

void add_network_options(CLI::App& app, NetworkOptions& options) {
  app.add_option("--grpc-unix-socket", options.unix_socket, "Path of a Unix socket that also serves gRPC");
  app.add_option("--grpc-unix-socket-mode", options.unix_socket_mode, "Permissions of the socket, octal")
      ->capture_default_str();
  app.add_option("--grpc-unix-socket-only", options.is_unix_socket_only, "No TCP port for gRPC")->capture_default_str();
  add_security_options(app, options);
  add_connection_options(app, options);
  add_limits(app, options);
  add_http_options(app, options);
}

uint64_t NetworkOptions::default_memory_quota() { return std::max(kMinQuota, uint64_t{memory_limit()} / 2); }

void validate(const NetworkOptions& options) {
  const bool has_tls = options.use_tls || options.use_mutual_tls;
  check(!has_tls || (!options.server_cert.empty() && !options.server_key.empty()),
        "--grpc-use-ssl needs --grpc-server-cert and --grpc-server-key");
  check(!options.use_mutual_tls || !options.root_cert.empty(), "--grpc-use-ssl-mutual needs --grpc-root-cert");
  check(has_tls || (options.server_cert.empty() && options.server_key.empty() && options.root_cert.empty()),
        "--grpc-server-cert, --grpc-server-key and --grpc-root-cert need --grpc-use-ssl true");
  // A negative value wraps to a very large one.
  check(options.http_max_input_bytes > 0 && options.http_max_input_bytes <= INT64_MAX,
        "--http-max-input-size must be greater than 0.");
  check(!options.http_access_tokens || !options.access_tokens.empty(), "--http-access-tokens needs --access-tokens");
  check(!options.is_unix_socket_only || !options.unix_socket.empty(),
        "--grpc-unix-socket-only needs --grpc-unix-socket");
  check(options.allow_compressed_requests || options.response_compression == "none",
        "--grpc-infer-response-compression-level needs --grpc-compressed-requests true");
  const std::string& mode = options.unix_socket_mode;
  check(!mode.empty() && mode.size() <= 4 && mode.find_first_not_of("01234567") == std::string::npos,
        "--grpc-unix-socket-mode must be octal like 660, got '", mode, "'");
  check(options.max_message_bytes >= 1 && options.max_message_bytes <= INT_MAX,
        "--grpc-max-message-size must be between 1 and ", INT_MAX, ", got ", options.max_message_bytes);
  check(options.memory_quota_bytes == 0 || options.memory_quota_bytes >= kMinQuota,
        "--client-memory-quota must be 0 or at least 64MB, got ", options.memory_quota_bytes);
}

}  // namespace tensord::server
