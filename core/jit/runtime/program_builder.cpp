#include "core/jit/runtime/program_builder.h"

#include <algorithm>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/ops/registry.h"

namespace tensord::jit {

namespace {

OpCode simple_code(const Node* node) {
  switch (node->kind()) {
    case NodeKind::kOp:
      if (!node->outputs().empty()) return OpCode::kOp;
      if (node->is_op("prim::Enter")) return OpCode::kEnter;
      return node->is_op("prim::Exit") ? OpCode::kExit : OpCode::kOp;
    case NodeKind::kGetAttr: return OpCode::kGetAttr;
    case NodeKind::kSetAttr: return OpCode::kSetAttr;
    case NodeKind::kCallMethod: return OpCode::kCallMethod;
    case NodeKind::kCallFunction: return ops::find_op(node->name()) ? OpCode::kCallOp : OpCode::kCallFunction;
    case NodeKind::kCallValue: return OpCode::kCallValue;
    case NodeKind::kCreateObject: return OpCode::kCreateObject;
    case NodeKind::kListConstruct: return OpCode::kListConstruct;
    case NodeKind::kTupleConstruct: return OpCode::kTupleConstruct;
    case NodeKind::kDictConstruct: return OpCode::kDictConstruct;
    case NodeKind::kListUnpack: return OpCode::kListUnpack;
    case NodeKind::kTupleUnpack: return OpCode::kTupleUnpack;
    case NodeKind::kTupleIndex: return OpCode::kTupleIndex;
    case NodeKind::kIsInstance: return OpCode::kIsInstance;
    case NodeKind::kUncheckedCast: return OpCode::kMove;
    case NodeKind::kWait: return OpCode::kWait;
    case NodeKind::kPlan: return OpCode::kPlan;
    default: fail(ErrorCode::kInternal, "no instruction for ", to_string(node->kind()));
  }
}

// The type an instruction needs at run time, if any.
ops::TypePtr detail_type(const Node* node) {
  using ops::TypeKind;
  switch (node->kind()) {
    case NodeKind::kGetAttr:
    case NodeKind::kSetAttr: return node->input()->type();
    case NodeKind::kListConstruct: {
      const ops::TypePtr& type = node->output()->type();
      return type->kind() == TypeKind::kList ? type->element() : ops::any_type();
    }
    case NodeKind::kTupleConstruct: {
      const ops::TypePtr& type = node->output()->type();
      return type->field_names().empty() ? nullptr : type;
    }
    case NodeKind::kCreateObject:
    case NodeKind::kDictConstruct: return node->output()->type();
    default: return nullptr;
  }
}

// Number of values of the type after flattening tuples.
int32_t count_results(const ops::Type& type) {
  if (type.kind() != ops::TypeKind::kTuple) return 1;
  int32_t count = 0;
  for (const ops::TypePtr& item : type.contained()) count += count_results(*item);
  return count;
}

int32_t count_results(std::span<GraphValue* const> values) {
  int32_t count = 0;
  for (const GraphValue* value : values) count += count_results(*value->type());
  return count;
}

}  // namespace

ProgramBuilder::ProgramBuilder(const Graph& graph, Program& program, const PlanSettings& settings)
    : graph_(graph), program_(program), settings_(settings), liveness_(graph) {
  program_.details.push_back(std::make_unique<InstructionDetail>());
}

void ProgramBuilder::build() {
  for (GraphValue* input : graph_.inputs()) program_.input_registers.push_back(assign(input));
  emit_block(graph_.block());
  const Values outputs = graph_.outputs();
  if (outputs.size() == 1) {
    emit(OpCode::kReturn, outputs, nullptr, graph_.block());
    return;
  }
  // No output is None; several are a tuple.
  Instruction& pack = emit(outputs.empty() ? OpCode::kMove : OpCode::kTupleConstruct, outputs, nullptr, graph_.block());
  const uint32_t result = allocate();
  if (!outputs.empty()) set_outputs(pack, std::array{result});
  Instruction& done = emit(OpCode::kReturn, {}, nullptr, graph_.block());
  done.operands_begin = static_cast<uint32_t>(program_.operands.size());
  program_.operands.push_back({result, static_cast<uint32_t>(program_.argument_template.size()), 1});
  program_.argument_template.emplace_back();
  done.operands_end = done.operands_begin + 1;
  done.argument_count = 1;
}

void ProgramBuilder::emit_block(const Block* block) {
  for (const Node* node = block->first(); node; node = node->next()) emit_node(node);
}

void ProgramBuilder::emit_node(const Node* node) {
  check_work_cancelled();
  switch (node->kind()) {
    case NodeKind::kConstant:
    case NodeKind::kUninitialized: return;
    case NodeKind::kIf: return emit_if(node);
    case NodeKind::kLoop: return emit_loop(node);
    case NodeKind::kFork: return emit_fork(node);
    default: return emit_simple(node, simple_code(node));
  }
}

void ProgramBuilder::emit_simple(const Node* node, OpCode code) {
  Instruction& instruction = emit(code, node->inputs(), node);
  instruction.op = code == OpCode::kCallOp ? ops::find_op(node->name()) : node->op();
  instruction.index = node->index();
  InstructionDetail& detail = *program_.details[instruction.detail];
  detail.name = node->name();
  detail.type = detail_type(node);
  detail.types = node->types();
  if (code == OpCode::kPlan) {
    detail.plan = Plan::build(*node, settings_);
    for (const GraphValue* output : node->outputs()) detail.result_numbers.push_back(result_number(output));
  }
  const bool is_attribute = code == OpCode::kGetAttr || code == OpCode::kSetAttr;
  if (is_attribute && detail.type->kind() == ops::TypeKind::kClass) {
    instruction.index = static_cast<const ops::ClassType&>(*detail.type).find_attribute(detail.name);
  }
  std::vector<uint32_t> registers;
  for (GraphValue* output : node->outputs()) registers.push_back(assign(output));
  set_outputs(instruction, registers);
}

// Index of the graph's result that the value is, alone or in a tuple; -1 if it is used otherwise too.
int32_t ProgramBuilder::result_number(const GraphValue* value) const {
  if (value->uses().size() != 1) return -1;
  const GraphValue::Use& use = value->uses()[0];
  if (use.block) return use.block == graph_.block() ? count_results(graph_.outputs().first(use.index)) : -1;
  if (use.node->kind() != NodeKind::kTupleConstruct) return -1;
  const int32_t first = result_number(use.node->output());
  return first < 0 ? -1 : first + count_results(Values(use.node->inputs()).first(use.index));
}

void ProgramBuilder::emit_if(const Node* node) {
  std::vector<GraphValue*> dying = liveness_.captured_dying_at(node);
  std::erase_if(dying, [](GraphValue* value) { return is_constant(value); });
  emit(OpCode::kJumpIfFalse, node->inputs(), node);
  const uint32_t to_else = static_cast<uint32_t>(program_.instructions.size()) - 1;
  std::vector<uint32_t> registers;
  for (GraphValue* output : node->outputs()) registers.push_back(assign(output));
  const std::vector<uint32_t> free_before = free_;
  const uint32_t count_before = program_.register_count;
  uint32_t to_end = 0;
  for (size_t i = 0; i < 2; ++i) {
    const Block* branch = node->blocks()[i];
    if (i == 1) {
      to_end = emit_jump(OpCode::kJump);
      land(to_else);
      // Registers that the first branch took or freed are restored for the second.
      free_ = free_before;
      for (uint32_t reg = count_before; reg < program_.register_count; ++reg) free_.push_back(reg);
    }
    std::vector<GraphValue*> unused;
    for (GraphValue* value : dying) {
      if (!liveness_.enter_branch(value, branch)) unused.push_back(value);
    }
    emit_drop(unused);
    emit_block(branch);
    std::vector<GraphValue*> results;
    std::vector<uint32_t> targets;
    for (size_t k = 0; k < registers.size(); ++k) {
      results.push_back(branch->outputs()[k]);
      targets.push_back(registers[k]);
    }
    if (!results.empty()) set_outputs(emit(OpCode::kMove, results, nullptr, branch), targets);
  }
  land(to_end);
}

void ProgramBuilder::emit_loop(const Node* node) {
  const Block* body = node->blocks()[0];
  std::vector<GraphValue*> dying = liveness_.captured_dying_at(node);
  std::erase_if(dying, [](GraphValue* value) { return is_constant(value); });
  const uint32_t state = program_.register_count;
  program_.register_count += 3;

  std::vector<GraphValue*> initial{node->input(0), nullptr};
  initial.insert(initial.end(), node->inputs().begin() + 1, node->inputs().end());
  Instruction& start = emit(OpCode::kMove, initial, node);
  std::vector<uint32_t> start_registers{state, state + 1, state + 2}, next_registers{state + 2};
  for (size_t k = 0; k < node->outputs().size(); ++k) {
    const uint32_t reg = allocate();
    registers_[node->output(k)] = registers_[body->inputs()[k + 1]] = reg;
    start_registers.push_back(reg);
    next_registers.push_back(reg);
    pinned_.insert(reg);
  }
  set_outputs(start, start_registers);

  const uint32_t test = emit_jump(OpCode::kLoopTest);
  program_.instructions[test].index = state;
  const uint32_t counter = assign(body->inputs()[0]);
  if (counter != kNoRegister) pinned_.insert(counter);
  set_outputs(program_.instructions[test], std::array{counter});
  emit_block(body);
  set_outputs(emit(OpCode::kMove, body->outputs(), nullptr, body), next_registers);
  program_.instructions[emit_jump(OpCode::kJump)].target = test;
  land(test);

  for (size_t k = 1; k < next_registers.size(); ++k) pinned_.erase(next_registers[k]);
  for (GraphValue* output : node->outputs()) {
    if (!output->has_uses()) dying.push_back(output);
  }
  emit_drop(dying);
  if (counter != kNoRegister) {
    pinned_.erase(counter);
    release(counter);
  }
  for (uint32_t i = 0; i < 3; ++i) release(state + i);
}

void ProgramBuilder::emit_fork(const Node* node) {
  const Block* body = node->blocks()[0];
  std::vector<GraphValue*> dying = liveness_.captured_dying_at(node);
  std::erase_if(dying, [](GraphValue* value) { return is_constant(value); });
  Instruction& enter = emit(OpCode::kMove, node->inputs(), node);
  std::vector<uint32_t> registers;
  for (GraphValue* input : body->inputs()) registers.push_back(assign(input));
  set_outputs(enter, registers);
  for (GraphValue* value : dying) liveness_.enter_branch(value, body);
  emit_block(body);
  OpCode code = body->outputs().size() == 1 ? OpCode::kMakeFuture : OpCode::kTupleConstruct;
  Instruction& pack = emit(code, body->outputs(), nullptr, body);
  set_outputs(pack, std::array{assign(node->output())});
}

Instruction& ProgramBuilder::emit(OpCode code, Values inputs, const Node* node, const Block* block) {
  Instruction instruction{code};
  instruction.operands_begin = static_cast<uint32_t>(program_.operands.size());
  instruction.arguments_begin = static_cast<uint32_t>(program_.argument_template.size());
  instruction.argument_count = static_cast<uint32_t>(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    GraphValue* value = inputs[i];
    bool dies = value && !is_constant(value);
    // If an instruction reads a value twice, the last read moves it out.
    dies = dies && std::find(inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1, inputs.end(), value) == inputs.end();
    dies = dies && (node ? liveness_.dies_at(value, node) : liveness_.dies_at_end(value, block));
    dies = dies && !(node && !node->blocks().empty() && liveness_.is_used_inside(value, node));
    add_argument(value, dies);
  }
  instruction.operands_end = static_cast<uint32_t>(program_.operands.size());
  if (node) {
    instruction.detail = static_cast<uint32_t>(program_.details.size());
    program_.details.push_back(std::make_unique<InstructionDetail>());
    program_.details.back()->location = node->location();
  }
  program_.instructions.push_back(instruction);
  return program_.instructions.back();
}

void ProgramBuilder::add_argument(GraphValue* value, bool dies) {
  const uint32_t slot = static_cast<uint32_t>(program_.argument_template.size());
  program_.argument_template.emplace_back();
  if (!value) {
    program_.argument_template.back() = ops::Value(0);
  } else if (is_constant(value)) {
    if (value->constant()) program_.argument_template.back() = *value->constant();
  } else {
    const uint32_t reg = registers_.at(value);
    program_.operands.push_back({reg, slot, dies ? 1u : 0u});
    if (dies) release(reg);
  }
}

void ProgramBuilder::set_outputs(Instruction& instruction, std::span<const uint32_t> registers) {
  instruction.outputs_begin = static_cast<uint32_t>(program_.outputs.size());
  instruction.output_count = static_cast<uint32_t>(registers.size());
  program_.outputs.insert(program_.outputs.end(), registers.begin(), registers.end());
}

void ProgramBuilder::emit_drop(std::span<GraphValue* const> values) {
  if (values.empty()) return;
  Instruction& drop = emit(OpCode::kMove, {}, nullptr, nullptr);
  drop.argument_count = static_cast<uint32_t>(values.size());
  for (GraphValue* value : values) add_argument(value, true);
  drop.operands_end = static_cast<uint32_t>(program_.operands.size());
}

uint32_t ProgramBuilder::emit_jump(OpCode code) {
  emit(code, {}, nullptr, nullptr);
  return static_cast<uint32_t>(program_.instructions.size()) - 1;
}

void ProgramBuilder::land(uint32_t jump) {
  program_.instructions[jump].target = static_cast<uint32_t>(program_.instructions.size());
}

bool ProgramBuilder::is_constant(const GraphValue* value) {
  return value->node() &&
         (value->node()->kind() == NodeKind::kConstant || value->node()->kind() == NodeKind::kUninitialized);
}

uint32_t ProgramBuilder::allocate() {
  if (free_.empty()) return program_.register_count++;
  const uint32_t reg = free_.back();
  free_.pop_back();
  return reg;
}

uint32_t ProgramBuilder::assign(const GraphValue* value) {
  if (!value->has_uses()) return kNoRegister;
  return registers_[value] = allocate();
}

void ProgramBuilder::release(uint32_t reg) {
  if (!pinned_.contains(reg)) free_.push_back(reg);
}

}  // namespace tensord::jit
