#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/jit/runtime/plan/plan_state.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Registers and scratch of a running call. The next call of the same depth reuses them, so a steady state allocates
// nothing.
struct Activation {
  uint64_t program_id = 0;  // program whose layout the vectors have; 0: none
  std::vector<ops::Value> registers;
  std::vector<ops::Value> arguments;  // one slot per operand of every instruction; constants stay in place
  std::vector<ops::Value> returns;
  std::vector<ops::Value> call_arguments;
};

struct RecentProgram;

// State that a worker keeps between runs. Not thread-safe: one per worker, and one run at a time.
class Frame {
 public:
  Frame();
  ~Frame();

  size_t arena_bytes() const { return plans_.arena_bytes(); }
  // Returns the result of a run that is no longer used, so that the next run reuses its tuple.
  void recycle(ops::Value result);

 private:
  friend class Interpreter;
  friend class Method;
  friend class Specializations;
  std::vector<RecentProgram>& recent_programs();
  ops::Value make_tuple(std::span<const ops::Value> items, const ops::TypePtr& type);
  std::vector<std::unique_ptr<Activation>> activations_;  // by call depth
  size_t depth_ = 0;
  std::vector<ops::Value> entered_;  // contexts of the "with" blocks that run, outermost first
  PlanState plans_;
  ops::Tuple spare_tuple_;                              // an empty tuple with no other reference, or null
  std::vector<ops::Value> bound_;                       // arguments of the current method, reused by the next run
  std::unique_ptr<std::vector<RecentProgram>> recent_;  // most recent first
};

}  // namespace tensord::jit
