#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/jit/runtime/plan/plan.h"
#include "core/ops/op.h"
#include "core/ops/value.h"

namespace tensord::jit {

class Program;

enum class OpCode : uint8_t {
  kOp,              // op(arguments…) → outputs
  kEnter,           // (context): its __exit__ is called if the program fails before kExit
  kExit,            // (context)
  kMove,            // arguments → outputs, all read before the first is written; without outputs: drops them
  kJump,            // jumps to `target`
  kJumpIfFalse,     // (bool): jumps to `target` if false
  kLoopTest,        // registers index … index+2 hold trip limit, counter, condition: to `target` when
                    // done, else the counter is written to the output and counted up
  kGetAttr,         // (object) → slot `index` if its class is `type`, otherwise by `name`
  kSetAttr,         // (object, value)
  kCallMethod,      // (object, arguments…), method `name` of the object's class
  kCallFunction,    // (arguments…), function with qualified `name`
  kCallValue,       // (function, arguments…)
  kCallOp,          // like kOp, for an operator that may call methods of its arguments; None if it returns nothing
  kCreateObject,    // of class `type`
  kListConstruct,   // element type `type`
  kTupleConstruct,  // `type` is set for a NamedTuple
  kDictConstruct,   // of dict type `type`
  kListUnpack,
  kTupleUnpack,
  kTupleIndex,  // item `index`
  kIsInstance,  // any of `types`
  kMakeFuture,
  kWait,
  kPlan,    // (tensors…) → the results of `detail.plan`
  kReturn,  // (result)
};

// A register that is read into an argument slot before an instruction runs.
struct Operand {
  uint32_t reg;
  uint32_t slot : 31;
  uint32_t is_last : 1;  // last use of the register: its value is moved out
};

inline constexpr uint32_t kNoRegister = UINT32_MAX;

// The callee that a call site found last, so that the next call needs no lock.
struct CallTarget {
  const ops::Type* receiver;  // the object's class; null for functions
  const Program* program;
};

// Data that only few instructions need.
struct InstructionDetail {
  std::string name;
  ops::TypePtr type;
  std::vector<ops::TypePtr> types;
  SourceLocation location;
  std::unique_ptr<const Plan> plan;
  // For each of the plan's outputs, its index among the program's flattened results; -1: not a result, or also used
  // otherwise.
  std::vector<int32_t> result_numbers;
  mutable std::atomic<const CallTarget*> target{nullptr};
};

struct Instruction {
  OpCode code;
  uint32_t operands_begin = 0, operands_end = 0;  // range in Program::operands
  uint32_t arguments_begin = 0, argument_count = 0;
  uint32_t outputs_begin = 0, output_count = 0;  // range in Program::outputs; kNoRegister drops the value
  uint32_t target = 0;
  uint32_t detail = 0;  // index in Program::details
  int64_t index = 0;
  const ops::Op* op = nullptr;
};

// A graph as a flat list of instructions over registers. Immutable and shared by all workers, except for the caches of
// call sites, which are atomic.
class Program {
 public:
  // REQUIRES: the graph is verified. The program keeps no reference to the graph. prim::Plan nodes are planned with
  // `settings`.
  static std::unique_ptr<Program> compile(const Graph& graph, std::string name, const PlanSettings& settings = {});

  uint64_t id = 0;  // unique within the process
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<uint32_t> outputs;
  std::vector<std::unique_ptr<InstructionDetail>> details;
  std::vector<uint32_t> input_registers;  // kNoRegister for an unused input
  uint32_t register_count = 0;
  std::vector<ops::Value> argument_template;  // constants in their slots, None elsewhere
};

// Totals over the program's plans.
struct PlanTotals {
  size_t plans = 0, calls = 0, arena_bytes = 0;
};
PlanTotals plan_totals(const Program& program);

// "aten::add.Tensor", "prim::GetAttr".
std::string kind_name(const Instruction& instruction);

// One line per instruction, for tests and `tensord inspect`.
std::string to_string(const Program& program);

}  // namespace tensord::jit
