#pragma once

#include <memory>
#include <string>

#include "server/config/options.h"
#include "server/repository/repository.h"

namespace tensord::server {

// The whole server: models, gRPC, metrics. Made, it listens; load() brings the models up;
// stop() drains. For one thread.
class Daemon {
 public:
  // `factory` opens model files. Throws Error{kUnavailable} when a port cannot be taken.
  Daemon(const ServerOptions& options, ModelFactory factory, const std::string& version);
  ~Daemon();

  // Loads the models and writes the ready file. Throws Error when a repository is not there
  // or the file cannot be written; a model that fails only becomes UNAVAILABLE.
  void load();
  int grpc_port() const;             // 0 with a Unix socket only
  std::string grpc_address() const;  // for clients: "127.0.0.1:8001" or "unix:/run/tensord.sock"
  int metrics_port() const;          // 0 without metrics
  int http_port() const;             // 0 without a port of its own
  // In mode poll, looks at the model repository at once; nothing in the others.
  void reload();
  // From now on health says that the server is not ready; requests are still answered.
  void announce_stop();
  // Takes no new requests, finishes those it has, cancels what is left when the time is over.
  // Metrics can be read until the daemon goes.
  void stop(int64_t timeout_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
