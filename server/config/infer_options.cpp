#include "server/config/infer_options.h"

#include <CLI/CLI.hpp>

namespace tensord::server {

void add_infer_options(CLI::App& app, InferOptions& options) {
  app.add_option("--grpc-header-forward-pattern", options.header_forward_pattern,
                 "Regular expression; headers with matching names become parameters of the request");
  app.add_option("--http-header-forward-pattern", options.http_header_forward_pattern,
                 "The same for HTTP requests, whose header names keep the client's case");
  app.add_option("--stream-max-requests", options.stream_max_requests,
                 "Requests of one stream that may wait for their responses; then reading from it pauses")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
}

}  // namespace tensord::server
