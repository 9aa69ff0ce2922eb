#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tensord {

// The memory that this process can use at most: the physical memory, or a smaller limit of its cgroup or of a parent
// cgroup.
size_t memory_limit();
size_t memory_limit(const std::vector<std::string>& cgroups);

// The folders of the process's cgroups that limit `controller`, from its own cgroup to the outermost visible one; v2
// before v1. `root` is the mount point of cgroups, `membership` a file in the format of /proc/self/cgroup.
std::vector<std::string> cgroup_folders(const std::string& controller, const std::string& root = "/sys/fs/cgroup",
                                        const std::string& membership = "/proc/self/cgroup");
// The smallest CPU quota of these cgroups in cores; 0 if none has a quota.
int quota_cores(const std::vector<std::string>& cgroups);

}  // namespace tensord
