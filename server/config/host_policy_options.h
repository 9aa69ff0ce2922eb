#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/host_placement.h"

namespace CLI {
class App;
}

namespace tensord::server {

// Placements by the names that instance_group.host_policy has.
using HostPolicies = std::map<std::string, HostPlacement>;

struct HostPolicyOptions {
  std::vector<std::string> settings;  // NAME,cpu-cores=0-3,8 or NAME,numa-node=1
};

void add_host_policy_options(CLI::App& app, HostPolicyOptions& options);

// A policy with numa-node alone has the cores of that node. Throws Error that names the flag for an unknown setting, a
// core that this process may not use, and a node that is not there.
HostPolicies parse_host_policies(const HostPolicyOptions& options);

}  // namespace tensord::server
