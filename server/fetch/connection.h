#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "server/fetch/http_get.h"

namespace tensord::server {

// A connection to the host of a URL, over TLS for https, with a time limit for each wait. Not thread-safe.
class FetchConnection {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Connects, and verifies the certificate by the system's authorities, or by the file that SSL_CERT_FILE names. Throws
  // TransientHttpError.
  FetchConnection(const HttpUrl& url, Time until);
  ~FetchConnection();

  void send(std::string_view bytes, Time until);
  // Waits for bytes; returns how many came, 0 at the end. Throws TransientHttpError.
  size_t receive(char* to, size_t max, Time until);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
