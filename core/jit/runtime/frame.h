#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit {

// Time spent by kind of instruction ("aten::conv2d", "prim::GetAttr"), over all runs of the
// frame it is set on. Calls are not counted themselves, only what they run.
struct Profile {
  struct Entry {
    uint64_t calls = 0;
    int64_t time_ns = 0;
  };
  std::map<std::string, Entry> entries;
};

// Registers and scratch of one call that is running; reused by the next call of the same
// depth, so a steady state allocates nothing.
struct Activation {
  uint64_t program_id = 0;  // whose layout the vectors have; 0 = none
  std::vector<ops::Value> registers;
  std::vector<ops::Value> arguments;  // one slot per operand of every instruction; constants stay in place
  std::vector<ops::Value> returns;
  std::vector<ops::Value> call_arguments;
};

// What one worker keeps between runs. Not thread-safe: one per worker, and one run at a time.
class Frame {
 public:
  // While set, every run adds to `profile` (not owned). Slows runs down a little.
  void set_profile(Profile* profile) { profile_ = profile; }
  Profile* profile() const { return profile_; }

 private:
  friend class Interpreter;
  std::vector<std::unique_ptr<Activation>> activations_;  // by call depth
  size_t depth_ = 0;
  Profile* profile_ = nullptr;
};

}  // namespace tensord::jit
