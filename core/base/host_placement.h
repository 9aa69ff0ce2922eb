#pragma once

#include <string_view>
#include <vector>

namespace tensord {

// Where threads run, and which memory they get.
struct HostPlacement {
  std::vector<int> cores;  // in order; empty: all that the process may use
  // NUMA nodes: memory comes from this one if it has any left, or in turns from several. Empty: from the node of the
  // core that first writes it.
  std::vector<int> nodes;
  bool operator==(const HostPlacement&) const = default;
};

// Reads "0-3,8" as Linux writes it; in order and without duplicates. Throws Error{kInvalidArgument}.
std::vector<int> parse_core_list(std::string_view text);
// The cores of a NUMA node. Throws Error{kInvalidArgument} if the machine has no such node.
std::vector<int> cores_of_node(int node);
// Throws Error{kInvalidArgument} naming a core that this process may not use, and kFailedPrecondition if the system
// does not let it choose memory.
void check_placement(const HostPlacement& placement);

// From now on the calling thread and the threads of its parallel work (see thread_budget) run there, and so do threads
// that they start. Null: as the process was started. `placement` must outlive that. Cheap if nothing changes.
void place_threads(const HostPlacement* placement);

// place_threads until the end of the scope.
class PlacementScope {
 public:
  explicit PlacementScope(const HostPlacement* placement);
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;

 private:
  const HostPlacement* const before_;
};

}  // namespace tensord
