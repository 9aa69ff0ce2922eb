#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tensord::jit {

// Time by kind of instruction ("aten::conv2d", "conv2d+relu", "prim::GetAttr"), over all runs of the frame on which it
// is set. Calls count only with what they run.
struct Profile {
  struct Entry {
    uint64_t calls = 0;
    int64_t time_ns = 0;
    double flops = 0, bytes = 0;  // of planned calls
  };
  std::map<std::string, Entry> entries;
  void add(const std::string& name, const std::string& detail, int64_t start_ns, int64_t duration_ns, double flops,
           double bytes) {
    Entry& entry = entries[name];
    ++entry.calls;
    entry.time_ns += duration_ns;
    entry.flops += flops;
    entry.bytes += bytes;
    if (with_events) events.push_back({name, detail, start_ns, duration_ns, flops, bytes});
  }

  // Every instruction and planned call in order, if requested.
  struct Event {
    std::string name, detail;
    int64_t start_ns = 0, duration_ns = 0;
    double flops = 0, bytes = 0;
  };
  bool with_events = false;
  std::vector<Event> events;
};

}  // namespace tensord::jit
