#include "core/base/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tensord {
namespace {

namespace fs = std::filesystem;

// Adds the folders from `mount` down to `path`, the innermost first. A path of another namespace (a container sees the
// host's path) does not exist here; then the mount point is the process's own cgroup.
void add_folders(const fs::path& mount, const fs::path& path, std::vector<std::string>& out) {
  std::error_code error;
  const bool leads_out = std::find(path.begin(), path.end(), fs::path("..")) != path.end();
  for (fs::path at = leads_out ? fs::path() : path.relative_path(); !at.empty(); at = at.parent_path()) {
    if (fs::is_directory(mount / at, error)) out.push_back((mount / at).string());
  }
  out.push_back(mount.string());
}

bool has_controller(const std::string& controllers, const std::string& controller) {
  return ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
}

// v2 has the file `cpu.max` with "quota period" or "max period"; v1 has two files.
int quota_cores_of(const fs::path& cgroup) {
  std::ifstream v2(cgroup / "cpu.max"), v1(cgroup / "cpu.cfs_quota_us"), v1_period(cgroup / "cpu.cfs_period_us");
  std::string quota;
  double period = 0;
  const bool is_there = v2 >> quota >> period || (v1 >> quota && v1_period >> period);
  if (!is_there || period <= 0) return 0;
  char* end = nullptr;
  const double value = std::strtod(quota.c_str(), &end);
  if (end == quota.c_str() || !(value > 0)) return 0;
  return static_cast<int>(std::lround(std::clamp(value / period, 1.0, 65536.0)));
}

}  // namespace

std::vector<std::string> cgroup_folders(const std::string& controller, const std::string& root,
                                        const std::string& membership) {
  std::string v2 = "/", v1 = "/";
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/group", "0::/group" of v2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) v2 = line.substr(second + 1);
    if (has_controller(controllers, controller)) v1 = line.substr(second + 1);
  }
  std::vector<std::string> out;
  std::error_code error;
  const fs::path unified = fs::path(root) / "unified";
  add_folders(fs::is_directory(unified, error) ? unified : fs::path(root), v2, out);
  if (fs::is_directory(fs::path(root) / controller, error)) add_folders(fs::path(root) / controller, v1, out);
  return out;
}

size_t memory_limit(const std::vector<std::string>& cgroups) {
  size_t limit = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // v2 writes "max" for no limit; v1 writes a number larger than any memory.
  for (const std::string& cgroup : cgroups) {
    for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
      std::ifstream file(fs::path(cgroup) / name);
      uint64_t bytes = 0;
      if (file >> bytes) limit = std::min<size_t>(limit, bytes);
    }
  }
  return limit;
}

size_t memory_limit() { return memory_limit(cgroup_folders("memory")); }

int quota_cores(const std::vector<std::string>& cgroups) {
  int least = 0;
  for (const std::string& cgroup : cgroups) {
    const int cores = quota_cores_of(cgroup);
    if (cores > 0) least = least > 0 ? std::min(least, cores) : cores;
  }
  return least;
}

}  // namespace tensord
