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

// How clients reach the daemon, what they may call and how much they may use. Addresses and ports are in ServerOptions.
struct NetworkOptions {
  std::string unix_socket;               // listened on as well; empty: none
  std::string unix_socket_mode = "600";  // of the file, octal
  bool is_unix_socket_only = false;      // no TCP port

  bool use_tls = false;
  bool use_mutual_tls = false;                     // clients need a certificate that `root_cert` signed
  std::string server_cert, server_key, root_cert;  // PEM files, read again when they change
  int tls_reload_secs = 10;

  // "GROUP[,GROUP…]:KEY=VALUE": these calls need the header triton-grpc-protocol-KEY.
  std::vector<std::string> restricted_protocols;
  std::string access_tokens;  // file of bearer tokens; empty: none needed

  std::string response_compression = "none";  // none, low, medium, high
  bool allow_compressed_requests = true;
  int keepalive_time_ms = 7'200'000;
  int keepalive_timeout_ms = 20'000;
  bool keepalive_permit_without_calls = false;
  int max_pings_without_data = 2;
  int min_ping_interval_ms = 300'000;  // of clients, without data
  int max_ping_strikes = 2;
  int max_connection_age_ms = 0;  // 0: connections are not ended
  int max_connection_age_grace_ms = 0;

  uint64_t max_message_bytes = INT_MAX;
  // 0: no limit. An idle one takes 26 KB and one of the files that the process may open.
  int max_connections = 8192;
  int max_connections_per_address = 4096;  // 0: no limit
  // Calls open at one time: of a connection, which the clients are told, and of all together. One takes some 15 KB
  // before anything of it is looked at.
  int max_streams = 1000;
  int max_all_streams = 10'000;
  // An address whose connection was cut for a flood waits for the next, 1 s at first and this long at most; 0: not.
  int flood_wait_secs = 60;
  // Inference requests under way, of all clients; 0: no limit. One takes some 20 KB beside its tensors.
  int max_requests = 10'000;
  // That all clients make the daemon hold, over both protocols; 0: no limit. Half of the memory by default: models need
  // the rest.
  uint64_t memory_quota_bytes = default_memory_quota();

  static uint64_t default_memory_quota();
  // The largest request, unpacked.
  uint64_t max_request_bytes() const {
    return memory_quota_bytes == 0 ? max_message_bytes : std::min(max_message_bytes, memory_quota_bytes);
  }

  bool allow_client_shm = false;  // clients may register shared memory

  bool allow_http = false;  // health and status on a port of its own; they are on the metrics port too
  std::string http_address = "127.0.0.1";
  int http_port = 8000;
  int http_threads = 2;
  size_t http_max_connections = 8192;  // 0, as the next two: no limit
  // Of one address, on each HTTP port; and such of these whose request's head has not come whole.
  size_t http_max_address_connections = 256;
  size_t http_max_address_heads = 64;
  // "GROUP[,GROUP…]:HEADER=VALUE": these calls over HTTP need the header.
  std::vector<std::string> http_restricted_apis;
  std::vector<std::string> http_allowed_origins;       // of browsers' pages; see AllowedOrigins
  uint64_t http_max_input_bytes = uint64_t{64} << 20;  // of JSON, and of a tensor in it
  bool status_page = true;
  bool http_access_tokens = false;  // HTTP needs a token as well, but for health
};

// Adds the flags to a command; the values go into `options`, which must outlive it.
void add_network_options(CLI::App& app, NetworkOptions& options);

// Throws Error{kInvalidArgument} naming the flag.
void validate(const NetworkOptions& options);

}  // namespace tensord::server
