#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/jit/runtime/plan/plan.h"
#include "core/jit/runtime/profile.h"

namespace tensord::jit {

// Batch-independent calls of a plan, run for a few samples at a time, so that intermediate tensors stay in the cache,
// and by several threads concurrently. Immutable; workers run it concurrently, each with its own memory.
struct SampleLoop {
  // Samples that are processed in the same way.
  struct Part {
    int64_t first = 0, end = 0;  // samples
    int64_t tile = 1;            // samples per tile; divides the samples of each team
    int teams = 1;               // concurrent teams, with one thread each if there are several
    // The plan for one tile. Its inputs and outputs are the loop's: roots of kind kInput and kOutput have the operand's
    // number.
    std::unique_ptr<const Plan> body;
    std::vector<ops::Cost> costs = {};  // of each call, over all samples of the part
    size_t pointer_count = 0;
    size_t team_bytes = 0;  // scratch per team: pointers, times, arena
  };

  int64_t samples = 0;
  std::vector<Part> parts;
  // Bytes between two samples of an operand; 0 if all samples share it.
  std::vector<int64_t> input_strides, output_strides;
  size_t scratch_bytes = 0;

  struct Options {
    const std::function<bool()>* is_cancelled = nullptr;  // called between calls, on the calling thread
    Profile* profile = nullptr;                           // receives each call once, with its time for all samples
    bool poison = false;                                  // fills the arena with NaN before each tile
  };
  // Throws Error and sets *failed to the call that failed.
  void run(const ops::PreparedRun& memory, const Options& options, const PlanCall** failed) const;

  size_t call_count() const;
};

// "for each of 8 samples, 1 at a time, 2 side by side", followed by the calls of one tile.
std::string to_string(const SampleLoop& loop, const std::string& indent);

}  // namespace tensord::jit
