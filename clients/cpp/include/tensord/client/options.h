#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace tensord::client {

// Names in lower case; values of visible ASCII, where the name does not end with -bin. Others are InvalidArgumentError.
using Headers = std::map<std::string, std::string>;

// All are texts in PEM, not paths.
struct TlsOptions {
  std::string root_certificates = {};  // that sign the server's; empty: those of the system
  std::string certificate_chain = {};  // of this client, where the server wants one
  std::string private_key = {};
  std::string server_name = {};  // in the server's certificate, where it is not the address

  // From files; empty paths stay empty. Throws NotFoundError.
  static TlsOptions from_files(const std::string& root_certificates, const std::string& certificate_chain = {},
                               const std::string& private_key = {});
};

// A call that fails with UNAVAILABLE (no connection, a server that stops) is made again. Calls that belong to a
// sequence, and streams, are not: the server may have seen them.
struct RetryOptions {
  int max_attempts = 3;  // 1 to 5 (gRPC's most); 1: no retries
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{2'000};
};

struct KeepaliveOptions {
  std::chrono::milliseconds time{0};  // between pings of a quiet connection; 0: none
  std::chrono::milliseconds timeout{20'000};
  bool without_calls = false;
};

enum class Compression { kNone, kDeflate, kGzip };

struct ClientOptions {
  std::optional<TlsOptions> tls = {};    // none: plain text
  std::string token = {};                // sent as `authorization: Bearer TOKEN`
  Headers headers = {};                  // of every call
  std::chrono::milliseconds timeout{0};  // of a call, all attempts together; 0: none
  bool wait_for_ready = false;           // calls wait for a connection instead of failing without one
  RetryOptions retry = {};
  KeepaliveOptions keepalive = {};
  Compression compression = Compression::kNone;  // of requests
  // Calls go in turn to all addresses that a DNS name has, as of a headless Kubernetes Service.
  bool round_robin = false;
};

// For one call, in place of the client's.
struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout = {};
  Headers headers = {};  // beside the client's
};

}  // namespace tensord::client
