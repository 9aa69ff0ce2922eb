#pragma once

#include <memory>
#include <string>

#include "server/config/options.h"
#include "server/repository/repository.h"

namespace tensord::server {

// The whole server: models, gRPC, HTTP, metrics and training. It listens from construction; load() loads the models;
// stop() drains. Not thread-safe.
class Daemon {
 public:
  // `factory` opens model files. Throws Error{kUnavailable} if a port cannot be bound.
  Daemon(const ServerOptions& options, ModelFactory factory, const std::string& version);
  ~Daemon();

  // Loads the models and writes the ready file. Throws Error if a repository does not exist or the file cannot be
  // written. A model that fails to load becomes UNAVAILABLE.
  void load();
  int grpc_port() const;             // 0 if only a Unix socket is used
  std::string grpc_address() const;  // for clients: "127.0.0.1:8001" or "unix:/run/tensord.sock"
  int metrics_port() const;          // 0 if metrics are off
  int http_port() const;             // 0 if the HTTP port is off
  // In mode poll, scans the model repository at once; does nothing in other modes.
  void reload();
  // Readiness reports false from now on; requests are still answered.
  void announce_stop();
  // Stops accepting requests, finishes open ones, and cancels what is left after the timeout. Metrics can be read until
  // destruction.
  void stop(int64_t timeout_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
