#include "core/base/host_placement.h"

#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "core/base/sanitizer_order.h"
#include "core/base/team.h"

namespace tensord {
namespace {

constexpr int kMaxCore = CPU_SETSIZE - 1;
constexpr int kMaxNode = 63;

// Of <linux/mempolicy.h>.
constexpr int kDefaultMemory = 0, kPreferredNode = 1, kInterleaved = 3;

// The cores of the process, as long as the first caller's thread is not placed.
const cpu_set_t& cores_of_process() {
  static const cpu_set_t cores = [] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    return mask;
  }();
  return cores;
}

// Returns false, with errno, if the system refuses.
bool set_memory_nodes(const std::vector<int>& nodes) {
  unsigned long mask = 0;
  for (const int node : nodes) mask |= 1UL << node;
  const int mode = nodes.empty() ? kDefaultMemory : nodes.size() == 1 ? kPreferredNode : kInterleaved;
  // The system reads one bit less than it is told.
  return syscall(SYS_set_mempolicy, mode, nodes.empty() ? nullptr : &mask, nodes.empty() ? 0UL : kMaxNode + 2UL) == 0;
}

void place_this_thread(const HostPlacement* placement) {
  cpu_set_t mask = cores_of_process();
  if (placement && !placement->cores.empty()) {
    CPU_ZERO(&mask);
    for (const int core : placement->cores) CPU_SET(core, &mask);
  }
  // check_placement() said that both are possible; a cpuset that shrank since then only costs speed.
  sched_setaffinity(0, sizeof mask, &mask);
  set_memory_nodes(placement ? placement->nodes : std::vector<int>());
}

int parse_core(std::string_view text, std::string_view whole) {
  int core = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  check(error == std::errc() && end == text.data() + text.size() && core >= 0 && core <= kMaxCore,
        "expected cores such as 0-3,8 but got '", whole, "'");
  return core;
}

// Of a thread that is where the thread that started it was.
constexpr HostPlacement kInherited;
thread_local const HostPlacement* current = &kInherited;
std::atomic<bool> has_placed{false};

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  for (std::string_view left = text;;) {
    const size_t comma = std::min(left.find(','), left.size());
    const std::string_view range = left.substr(0, comma);
    const size_t dash = range.find('-');
    const int first = parse_core(range.substr(0, dash), text);
    const int last = dash == std::string_view::npos ? first : parse_core(range.substr(dash + 1), text);
    check(first <= last, "expected cores such as 0-3,8 but got '", text, "'");
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (comma == left.size()) break;
    left.remove_prefix(comma + 1);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::vector<int> cores_of_node(int node) {
  std::ifstream file(concat("/sys/devices/system/node/node", node, "/cpulist"));
  std::string text;
  check(node >= 0 && node <= kMaxNode && std::getline(file, text), "this machine has no NUMA node ", node);
  return text.empty() ? std::vector<int>() : parse_core_list(text);  // a node may have memory only
}

void check_placement(const HostPlacement& placement) {
  for (const int core : placement.cores)
    check(CPU_ISSET(core, &cores_of_process()), "this process may not use core ", core);
  if (placement.nodes.empty()) return;
  const bool is_set = set_memory_nodes(placement.nodes);
  const int reason = errno;
  if (is_set) set_memory_nodes(current ? current->nodes : std::vector<int>());
  if (!is_set) {
    fail(ErrorCode::kFailedPrecondition, "memory of a NUMA node cannot be chosen: ", std::strerror(reason),
         reason == EPERM ? "; a container needs the capability SYS_NICE for it" : "");
  }
}

namespace {

TENSORD_NOT_THREAD_SANITIZED void place_team(const HostPlacement* placement, int threads) {
  int order = 0;
  sanitizer_release(&order);
#pragma omp parallel num_threads(threads)
  {
    sanitizer_acquire(&order);
    place_this_thread(placement);
    sanitizer_release(&order);
  }
  sanitizer_acquire(&order);
}

}  // namespace

void place_threads(const HostPlacement* placement) {
  if (placement == &kInherited) placement = nullptr;
  const bool was_ever_placed = placement || has_placed.load(std::memory_order_relaxed);
  if (placement == current || !was_ever_placed) [[likely]]
    return;
  has_placed.store(true, std::memory_order_relaxed);
  current = placement;
  // OpenMP keeps the threads of a larger team while a budget of one thread is used, and ends those beyond any other
  // team. Threads that it starts later are where this one is.
  const int team = largest_team();
  place_team(placement, std::clamp(omp_get_max_threads(), std::min(2, team), team));
}

PlacementScope::PlacementScope(const HostPlacement* placement) : before_(current) { place_threads(placement); }
PlacementScope::~PlacementScope() { place_threads(before_); }

}  // namespace tensord
