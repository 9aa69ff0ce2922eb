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
  app.add_option("--grpc-root-cert", options.root_cert, "PEM file with the certificates that sign those of clients");
  app.add_option("--grpc-ssl-reload-secs", options.tls_reload_secs,
                 "How often the PEM files are looked at; changed ones serve the connections made after that")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--grpc-restricted-protocol", options.restricted_protocols,
                 "GROUP,…:KEY=VALUE: calls of these groups need the header triton-grpc-protocol-KEY with this value. "
                 "Groups: health, metadata, inference, model-repository, shared-memory, model-config, statistics, "
                 "trace, logging, training, training-hosts; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--access-tokens", options.access_tokens,
                 "File with lines GROUP,… TOKEN (or: all TOKEN). Every call but those of health then needs the header "
                 "authorization: Bearer TOKEN with a token for its group. Read again when it changes");
  app.add_option("--allow-client-shm", options.allow_client_shm,
                 "Clients may register shared memory: every client then reads and writes any object that the server "
                 "may open")
      ->capture_default_str();
}

void add_connection_options(CLI::App& app, NetworkOptions& options) {
  const auto milliseconds = CLI::Range(0, INT_MAX);
  app.add_option("--grpc-keepalive-time", options.keepalive_time_ms, "Milliseconds between pings of idle connections")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-keepalive-timeout", options.keepalive_timeout_ms, "Milliseconds that a ping's answer may take")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-keepalive-permit-without-calls", options.keepalive_permit_without_calls,
                 "Ping, and be pinged on, connections without calls")
      ->capture_default_str();
  app.add_option("--grpc-http2-max-pings-without-data", options.max_pings_without_data,
                 "Pings between two data frames; 0 is no limit")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-http2-min-recv-ping-interval-without-data", options.min_ping_interval_ms,
                 "Milliseconds between pings of a client without data, below which they are strikes")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-http2-max-ping-strikes", options.max_ping_strikes,
                 "Bad pings after which a connection is closed; 0 is no limit")
      ->check(milliseconds)
      ->capture_default_str();
  app.add_option("--grpc-max-connection-age", options.max_connection_age_ms,
                 "Milliseconds after which a connection is asked to end; 0 is never")
      ->check(milliseconds);
  app.add_option("--grpc-max-connection-age-grace", options.max_connection_age_grace_ms,
                 "Milliseconds that its calls then have; 0 is as long as they take")
      ->check(milliseconds);
  app.add_option("--grpc-infer-response-compression-level", options.response_compression,
                 "How hard responses are compressed, for clients that take that: none, low, medium, high")
      ->check(CLI::IsMember({"none", "low", "medium", "high"}))
      ->capture_default_str();
  app.add_option("--grpc-compressed-requests", options.allow_compressed_requests,
                 "Take compressed requests; unpacked they count as others do")
      ->capture_default_str();
}

void add_limits(CLI::App& app, NetworkOptions& options) {
  const auto bytes = CLI::AsSizeValue(/*kb_is_1000=*/false);
  app.add_option("--grpc-max-message-size", options.max_message_bytes, "Largest message taken or sent, as 64MB")
      ->transform(bytes)
      ->capture_default_str();
  app.add_option("--grpc-max-connections", options.max_connections,
                 "Connections at one time, fewer where the process may not open so many files; for another one the one "
                 "that is idle for longest is closed, where none is idle the new one; 0 is no limit")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--grpc-max-connections-per-address", options.max_connections_per_address,
                 "The same of one address (IPv6: of one network of 64 bits); 0 is no limit")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option(
         "--grpc-max-streams", options.max_streams,
         "Calls open at one time on a connection: clients are told, and wait with more; a connection that opens "
         "more is cut")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--grpc-max-all-streams", options.max_all_streams,
                 "Calls open at one time on all connections; with more the connection that has most of them is cut")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--grpc-flood-wait-secs", options.flood_wait_secs,
                 "An address whose connection was cut because it flooded the server gets no new one for 1 s, twice as "
                 "long each time it happens again, and this long at most; 0 is not at all, as where all clients come "
                 "through one address")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_option("--grpc-max-requests", options.max_requests,
                 "Inference requests under way at one time, of all clients and models; more are refused; 0 is no limit")
      ->check(CLI::Range(0, INT_MAX))
      ->capture_default_str();
  app.add_option(
         "--client-memory-quota,--grpc-memory-quota", options.memory_quota_bytes,
         "Bytes that all clients together make the daemon hold, over gRPC and HTTP: requests, what they become, "
         "answers "
         "that are not read yet, as 4GB; more are refused, and clients send slower before that; 0 is no limit, the "
         "default half of the memory that the process may have. The second is its old name")
      ->transform(bytes);
}

void add_http_options(CLI::App& app, NetworkOptions& options) {
  app.add_option(
         "--allow-http", options.allow_http,
         "Serve the KServe v2 REST protocol, health and status on the HTTP port; the metrics port has health and "
         "status in any case")
      ->capture_default_str();
  app.add_option("--http-address", options.http_address, "Address to listen on for HTTP")->capture_default_str();
  app.add_option("--http-port", options.http_port, "Port for HTTP; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--http-access-tokens", options.http_access_tokens,
                 "Metrics and the status page need a token of --access-tokens for the group statistics, as 'Bearer "
                 "TOKEN' or as a password; health does not")
      ->capture_default_str();
  app.add_option("--status-page", options.status_page, "Serve the status page at / of the HTTP and metrics ports")
      ->capture_default_str();
  app.add_option("--http-restricted-api", options.http_restricted_apis,
                 "GROUP,…:HEADER=VALUE: calls of these groups over HTTP need the header with this value. Groups as of "
                 "--grpc-restricted-protocol, which holds for HTTP too where this says nothing; may be repeated")
      ->allow_extra_args(false);
  app.add_option(
         "--http-allow-origin", options.http_allowed_origins,
         "An origin whose pages may call the HTTP port from a browser, as https://app.example.org, or *; may be "
         "repeated")
      ->allow_extra_args(false);
  app.add_option("--http-max-input-size", options.http_max_input_bytes,
                 "Largest JSON of an HTTP request, tensor in it, and body that is the one input or was packed, as 64MB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
  app.add_option("--http-thread-count", options.http_threads, "Threads that serve the HTTP port's connections")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  const auto count = CLI::Range(0, 1 << 20);
  app.add_option("--http-max-connections", options.http_max_connections,
                 "HTTP connections at one time; the next one takes the place of the one that has been idle for "
                 "longest; 0 is no limit")
      ->check(count)
      ->capture_default_str();
  app.add_option("--http-max-address-connections", options.http_max_address_connections,
                 "Of these, connections of one address, of IPv6 of one /64; on the metrics port too. Unix sockets do "
                 "not count; 0 is no limit")
      ->check(count)
      ->capture_default_str();
  app.add_option("--http-max-address-heads", options.http_max_address_heads,
                 "Of these, connections that have sent a part of their request's headers; the oldest one is closed for "
                 "the next; 0 is no limit")
      ->check(count)
      ->capture_default_str();
}

}  // namespace

void add_network_options(CLI::App& app, NetworkOptions& options) {
  app.add_option("--grpc-unix-socket", options.unix_socket, "Path of a Unix socket to listen on for gRPC too");
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
