#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace tensord::server {

// How inference requests are parsed and answered.
struct InferOptions {
  // Headers whose whole name (in lower case) matches this RE2 expression become parameters of the request; empty: none.
  std::string header_forward_pattern;
  std::string http_header_forward_pattern;  // same for HTTP, where names keep the client's spelling
  // Per stream: reading pauses while this many requests wait for their responses.
  uint32_t stream_max_requests = 1024;
};

// Adds the flags to a command. `options` receives the values and must outlive the command.
void add_infer_options(CLI::App& app, InferOptions& options);

}  // namespace tensord::server
