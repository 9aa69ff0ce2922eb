#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/jit/runtime/plan/plan.h"
#include "core/jit/runtime/profile.h"

namespace tensord::jit {

// Calls of a plan that keep the samples of a batch apart, done for a few samples at a time, so that what
// passes between them stays in the cache, and by several threads side by side. Immutable; workers run it
// at once, each with memory of its own.
struct SampleLoop {
  // Samples that are done in one way.
  struct Part {
    int64_t first = 0, end = 0;  // samples
    int64_t tile = 1;            // samples a turn; divides what a thread gets
    int teams = 1;               // that take turns side by side, of one thread each when there are several
    // For one tile. Its inputs and outputs are the loop's: roots of kind kInput and kOutput have the
    // number of the operand.
    std::unique_ptr<const Plan> body;
    std::vector<ops::Cost> costs = {};  // of each call, for all samples of the part
    size_t pointer_count = 0;
    size_t team_bytes = 0;  // of scratch: pointers, times, arena
  };

  int64_t samples = 0;
  std::vector<Part> parts;
  // Bytes from one sample of an operand to the next; 0 where all samples use the same.
  std::vector<int64_t> input_strides, output_strides;
  size_t scratch_bytes = 0;

  struct Options {
    const std::function<bool()>* is_cancelled = nullptr;  // asked between calls, by the calling thread
    Profile* profile = nullptr;                           // gets each call once, with its time for all samples
    bool poison = false;                                  // fills the arena with NaN before each turn
  };
  // Throws Error, with the call that failed in *failed.
  void run(const ops::PreparedRun& memory, const Options& options, const PlanCall** failed) const;

  size_t call_count() const;
};

// "for each of 8 samples, 1 at a time, 2 side by side" and the calls of one turn.
std::string to_string(const SampleLoop& loop, const std::string& indent);

}  // namespace tensord::jit
