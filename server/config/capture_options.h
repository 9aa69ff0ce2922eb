#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Which requests are kept in files, for warm-up and training. Flags of `serve`.
struct CaptureOptions {
  std::string folder;                      // --capture-dir; empty: none are kept
  std::vector<std::string> models = {};    // --capture-model; empty: all
  uint32_t rate = 1;                       // one of so many requests that were answered well
  bool has_outputs = false;                // the answers too
  uint64_t max_requests = 10'000;          // of a model
  uint64_t max_bytes = uint64_t{1} << 30;  // of a model
};

void add_capture_options(CLI::App& app, CaptureOptions& options);

}  // namespace tensord::server
