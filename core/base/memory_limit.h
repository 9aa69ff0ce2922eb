#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tensord {

// Bytes that this process can ever have: physical memory, or less when its cgroup, or one above that, says so.
size_t memory_limit();
size_t memory_limit(const std::vector<std::string>& cgroups);

// The folders of the cgroups that this process is in and that limit `controller`, from its own up to the outermost one
// that it sees: v2's, then v1's. `root` is where cgroups are mounted, `membership` a file as /proc/self/cgroup.
std::vector<std::string> cgroup_folders(const std::string& controller, const std::string& root = "/sys/fs/cgroup",
                                        const std::string& membership = "/proc/self/cgroup");
// Cores by the quotas of these cgroups, the least of them; 0: none has one.
int quota_cores(const std::vector<std::string>& cgroups);

}  // namespace tensord
