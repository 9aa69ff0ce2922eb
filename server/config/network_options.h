#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// How clients reach the daemon, which calls they may make and how much they may use. Addresses and ports are in
// ServerOptions.
struct NetworkOptions {
  std::string unix_socket;               // a further listener; empty: none
  std::string unix_socket_mode = "600";  // octal permissions of the socket file
  bool is_unix_socket_only = false;      // do not listen on a TCP port

  bool use_tls = false;
  bool use_mutual_tls = false;                     // require a client certificate signed by `root_cert`
  std::string server_cert, server_key, root_cert;  // PEM files, reloaded when they change
  int tls_reload_secs = 10;

  // "GROUP[,GROUP…]:KEY=VALUE": calls of these groups need the header triton-grpc-protocol-KEY.
  std::vector<std::string> restricted_protocols;
  std::string access_tokens;  // file of bearer tokens; empty: no token needed

  std::string response_compression = "none";  // none, low, medium, high
  bool allow_compressed_requests = true;
  int keepalive_time_ms = 7'200'000;
  int keepalive_timeout_ms = 20'000;
  bool keepalive_permit_without_calls = false;
  int max_pings_without_data = 2;
  int min_ping_interval_ms = 300'000;  // minimum interval of client pings on a connection without data
  int max_ping_strikes = 2;
  int max_connection_age_ms = 0;  // 0: no maximum
  int max_connection_age_grace_ms = 0;

  uint64_t max_message_bytes = INT_MAX;
  // 0: no limit. An idle connection takes 26 KB and one file descriptor.
  int max_connections = 8192;
  int max_connections_per_address = 4096;  // 0: no limit
  // Concurrent calls: per connection, announced to clients through SETTINGS, and in total. A call takes about 15 KB
  // before any of it is parsed.
  int max_streams = 1000;
  int max_all_streams = 10'000;
  // After a connection is closed for flooding, its address must wait: 1 s at first, and at most this long; 0: no wait.
  int flood_wait_secs = 60;
  // Inference requests in flight over all clients; 0: no limit. A request takes about 20 KB besides its tensors.
  int max_requests = 10'000;
  // Memory that all clients together may make the daemon allocate, over both protocols; 0: no limit. The default is
  // half of the memory, because models need the rest.
  uint64_t memory_quota_bytes = default_memory_quota();

  static uint64_t default_memory_quota();
  // Maximum size of a decompressed request.
  uint64_t max_request_bytes() const {
    return memory_quota_bytes == 0 ? max_message_bytes : std::min(max_message_bytes, memory_quota_bytes);
  }

  bool allow_client_shm = false;  // clients may register shared memory

  bool allow_http = false;  // serve health and status on a separate port; the metrics port always has them
  std::string http_address = "127.0.0.1";
  int http_port = 8000;
  int http_threads = 2;
  size_t http_max_connections = 8192;  // 0: no limit, here and for the next two
  // Per address on each HTTP port: connections, and those of them that have not sent a complete request head.
  size_t http_max_address_connections = 256;
  size_t http_max_address_heads = 64;
  // "GROUP[,GROUP…]:HEADER=VALUE": HTTP calls of these groups need the header.
  std::vector<std::string> http_restricted_apis;
  std::vector<std::string> http_allowed_origins;       // origins for CORS; see AllowedOrigins
  uint64_t http_max_input_bytes = uint64_t{64} << 20;  // of a JSON body, and of each tensor in it
  bool status_page = true;
  bool http_access_tokens = false;  // HTTP needs a bearer token too, except for health
};

// Adds the flags to a command. `options` receives the values and must outlive the command.
void add_network_options(CLI::App& app, NetworkOptions& options);

// Throws Error{kInvalidArgument} naming the flag.
void validate(const NetworkOptions& options);

}  // namespace tensord::server
