#include "server/config/cache_options.h"

#include <CLI/CLI.hpp>

#include <charconv>

#include "core/base/error.h"

namespace tensord::server {

void add_cache_options(CLI::App& app, CacheOptions& options) {
  app.add_option("--cache-config", options.configs,
                 "local,size=BYTES: size of the response cache, for models with response_cache")
      ->allow_extra_args(false);
  app.add_option("--response-cache-byte-size", options.legacy_bytes, "The same as --cache-config local,size=BYTES")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

uint64_t CacheOptions::max_bytes() const {
  check(configs.empty() || legacy_bytes == 0, "--cache-config and --response-cache-byte-size cannot be used together");
  uint64_t bytes = legacy_bytes;
  for (const std::string& config : configs) {
    const size_t comma = config.find(','), equals = config.find('=', comma);
    check(comma != std::string::npos && equals != std::string::npos,
          "--cache-config must be as \"local,size=1048576\", got '", config, "'");
    const std::string cache = config.substr(0, comma), key = config.substr(comma + 1, equals - comma - 1);
    if (cache != "local") fail(ErrorCode::kUnimplemented, "--cache-config: cache '", cache, "' is not supported");
    check(key == "size", "--cache-config: the cache 'local' has no setting '", key, "'");
    const char* end = config.data() + config.size();
    const auto [stop, error] = std::from_chars(config.data() + equals + 1, end, bytes);
    check(error == std::errc() && stop == end, "--cache-config: size must be a number of bytes, got '",
          config.substr(equals + 1), "'");
  }
  return bytes;
}

void validate(const CacheOptions& options) { options.max_bytes(); }

}  // namespace tensord::server
