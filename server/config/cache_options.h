#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Flags of `serve` for the response cache.
struct CacheOptions {
  std::vector<std::string> configs;  // --cache-config: "local,size=1048576"
  uint64_t legacy_bytes = 0;         // --response-cache-byte-size

  // Maximum size of the cached responses; 0 turns the cache off. Throws Error{kInvalidArgument} or {kUnimplemented}
  // that names the flag.
  uint64_t max_bytes() const;
};

void add_cache_options(CLI::App& app, CacheOptions& options);
void validate(const CacheOptions& options);

}  // namespace tensord::server
