#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Flags for resources that models share while they run.
struct RateLimitOptions {
  struct Resource {
    std::string name;
    uint64_t count = 0;
    bool is_global = false;
    std::optional<int> device = {};  // none: of each device
  };
  std::string mode = "off";            // off: ignores the models' rate_limiter; execution_count: applies it
  std::vector<std::string> resources;  // NAME:COUNT, NAME:COUNT:DEVICE or NAME:COUNT:global
};

void add_rate_limit_options(CLI::App& app, RateLimitOptions& options);

// The resources that the flags define; the last value of a name wins. Throws Error{kInvalidArgument} that names the
// flag.
std::vector<RateLimitOptions::Resource> parse_rate_limits(const RateLimitOptions& options);

}  // namespace tensord::server
