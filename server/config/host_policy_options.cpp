#include "server/config/host_policy_options.h"

#include <CLI/CLI.hpp>

#include <charconv>

#include "core/base/error.h"

namespace tensord::server {
namespace {

int parse_node(const std::string& text) {
  int node = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  check(error == std::errc() && end == text.data() + text.size() && node >= 0, "numa-node must be a number, got '",
        text, "'");
  return node;
}

void set_policy(const std::string& setting, const std::string& value, HostPlacement& placement) {
  if (setting == "cpu-cores") {
    placement.cores = parse_core_list(value);
  } else if (setting == "numa-node") {
    placement.nodes = {parse_node(value)};
    cores_of_node(placement.nodes[0]);
  } else {
    fail(ErrorCode::kInvalidArgument, "unknown setting '", setting, "'; there are cpu-cores and numa-node");
  }
}

}  // namespace

void add_host_policy_options(CLI::App& app, HostPolicyOptions& options) {
  app.add_option(
         "--host-policy", options.settings,
         "NAME,cpu-cores=0-3,8 or NAME,numa-node=1: where the instances run whose instance_group has host_policy "
         "NAME (without one: cpu, gpu_0, …); may be repeated")
      ->allow_extra_args(false);
}

HostPolicies parse_host_policies(const HostPolicyOptions& options) {
  HostPolicies out;
  const auto naming = [](const std::string& text, const auto& fn) {
    try {
      fn();
    } catch (const Error& error) {
      throw Error(error.code(), concat("--host-policy ", text, ": ", error.what()));
    }
  };
  for (const std::string& text : options.settings) {
    naming(text, [&] {
      const size_t comma = text.find(','), equals = text.find('=', std::min(comma, text.size()));
      check(comma != std::string::npos && comma > 0 && equals != std::string::npos, "expected NAME,SETTING=VALUE");
      set_policy(text.substr(comma + 1, equals - comma - 1), text.substr(equals + 1), out[text.substr(0, comma)]);
    });
  }
  for (auto& [name, placement] : out) {
    naming(name, [&, &placed = placement] {
      if (placed.cores.empty()) placed.cores = cores_of_node(placed.nodes[0]);
      check_placement(placed);
    });
  }
  return out;
}

}  // namespace tensord::server
