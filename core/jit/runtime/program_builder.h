#pragma once

#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/runtime/plan/liveness.h"
#include "core/jit/runtime/program.h"

namespace tensord::jit {

// Translates a graph into a Program: flattens control flow into jumps, allocates registers (those of dead values are
// reused) and marks last uses.
class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, Program& program, const PlanSettings& settings);
  void build();

 private:
  using Values = std::span<GraphValue* const>;

  void emit_block(const Block* block);
  void emit_node(const Node* node);
  void emit_simple(const Node* node, OpCode code);
  void emit_if(const Node* node);
  void emit_loop(const Node* node);
  void emit_fork(const Node* node);

  // Adds an instruction that reads `inputs`; those that die are determined by `node` (or, if null, by the end of
  // `block`). A null input is the constant 0.
  Instruction& emit(OpCode code, Values inputs, const Node* node, const Block* block = nullptr);
  void add_argument(GraphValue* value, bool dies);
  void set_outputs(Instruction& instruction, std::span<const uint32_t> registers);
  // Drops values that are not read anymore.
  void emit_drop(std::span<GraphValue* const> values);
  uint32_t emit_jump(OpCode code);
  void land(uint32_t jump);  // sets the jump's target to the next instruction

  int32_t result_number(const GraphValue* value) const;
  static bool is_constant(const GraphValue* value);
  uint32_t allocate();
  uint32_t assign(const GraphValue* value);  // allocates a register for a new value, or none if unused
  void release(uint32_t reg);

  const Graph& graph_;
  Program& program_;
  const PlanSettings& settings_;
  Liveness liveness_;
  std::unordered_map<const GraphValue*, uint32_t> registers_;
  std::vector<uint32_t> free_;
  std::set<uint32_t> pinned_;  // carried by loops under construction
};

}  // namespace tensord::jit
