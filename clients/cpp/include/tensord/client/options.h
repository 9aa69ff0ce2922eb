#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace tensord::client {

// Names are lower case. Values are printable ASCII, unless the name ends with -bin. Otherwise InvalidArgumentError is
// thrown.
using Headers = std::map<std::string, std::string>;

// All are PEM strings, not paths.
struct TlsOptions {
  std::string root_certificates = {};  // the CA of the server's certificate; empty: the system's
  std::string certificate_chain = {};  // client certificate, if the server requires one
  std::string private_key = {};
  std::string server_name = {};  // in the server's certificate, if it differs from the address

  // Reads the files; empty paths stay empty. Throws NotFoundError.
  static TlsOptions from_files(const std::string& root_certificates, const std::string& certificate_chain = {},
                               const std::string& private_key = {});
};

// Calls that fail with UNAVAILABLE (no connection, a server that shuts down) are repeated. Requests of a sequence, and
// streams, are not, because the server may have processed them.
struct RetryOptions {
  int max_attempts = 3;  // 1 to 5 (gRPC's limit); 1: no retries
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{2'000};
};

struct KeepaliveOptions {
  std::chrono::milliseconds time{0};  // between pings of an idle connection; 0: no pings
  std::chrono::milliseconds timeout{20'000};
  bool without_calls = false;
};

enum class Compression { kNone, kDeflate, kGzip };

struct ClientOptions {
  std::optional<TlsOptions> tls = {};    // none: no TLS
  std::string token = {};                // sent as `authorization: Bearer TOKEN`
  Headers headers = {};                  // sent with every call
  std::chrono::milliseconds timeout{0};  // of a call, including retries; 0: none
  bool wait_for_ready = false;           // wait for a connection instead of failing without one
  RetryOptions retry = {};
  KeepaliveOptions keepalive = {};
  Compression compression = Compression::kNone;  // of requests
  // Distributes calls over all addresses of a DNS name, such as a headless Kubernetes Service.
  bool round_robin = false;
};

// Options of one call; they replace the client's.
struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout = {};
  Headers headers = {};  // in addition to the client's
};

}  // namespace tensord::client
