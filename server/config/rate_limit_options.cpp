#include "server/config/rate_limit_options.h"

#include <CLI/CLI.hpp>

#include <charconv>

#include "core/base/error.h"

namespace tensord::server {
namespace {

RateLimitOptions::Resource parse_resource(const std::string& text) {
  const size_t first = text.find(':');
  const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  const std::string count = first == std::string::npos
                                ? ""
                                : text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  const std::string device = second == std::string::npos ? "" : text.substr(second + 1);
  RateLimitOptions::Resource out{.name = text.substr(0, first), .count = 0, .is_global = device == "global"};
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), out.count);
  const bool is_count = error == std::errc() && end == count.data() + count.size() && !count.empty();
  check(is_count && !out.name.empty(), "--rate-limit-resource must be NAME:COUNT or NAME:COUNT:DEVICE, got '", text,
        "'");
  if (second == std::string::npos || out.is_global) return out;
  int index = -1;
  const auto [last, wrong] = std::from_chars(device.data(), device.data() + device.size(), index);
  const bool is_index = wrong == std::errc() && last == device.data() + device.size() && index >= 0;
  check(is_index, "--rate-limit-resource '", text, "': the device must be a number or global, got '", device, "'");
  out.device = index;
  return out;
}

}  // namespace

void add_rate_limit_options(CLI::App& app, RateLimitOptions& options) {
  app.add_option("--rate-limit", options.mode,
                 "execution_count: a model runs when the resources of its rate_limiter are free; off: no limit")
      ->check(CLI::IsMember({"off", "execution_count"}))
      ->capture_default_str();
  app.add_option("--rate-limit-resource", options.resources,
                 "NAME:COUNT[:DEVICE]: the amount of a resource; by default as much as the largest request of any "
                 "model. Each device has as much; with DEVICE, the amount of this device (the CPU is 0), or of a "
                 "resource that is global: global; may be repeated")
      ->allow_extra_args(false);
}

std::vector<RateLimitOptions::Resource> parse_rate_limits(const RateLimitOptions& options) {
  std::vector<RateLimitOptions::Resource> out;
  for (const std::string& text : options.resources) out.push_back(parse_resource(text));
  return out;
}

}  // namespace tensord::server
