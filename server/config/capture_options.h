#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Flags of `serve` for capturing requests to files, for warm-up and training.
struct CaptureOptions {
  std::string folder;                      // --capture-dir; empty: capture is off
  std::vector<std::string> models = {};    // --capture-model; empty: all models
  uint32_t rate = 1;                       // captures one in `rate` successful requests
  bool has_outputs = false;                // captures the responses too
  uint64_t max_requests = 10'000;          // per model
  uint64_t max_bytes = uint64_t{1} << 30;  // per model
};

void add_capture_options(CLI::App& app, CaptureOptions& options);

}  // namespace tensord::server
