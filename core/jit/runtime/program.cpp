#include "core/jit/runtime/program.h"

#include <algorithm>
#include <sstream>

#include "core/base/error.h"
#include "core/jit/runtime/program_builder.h"

namespace tensord::jit {

namespace {

const char* code_name(OpCode code) {
  switch (code) {
    case OpCode::kOp: return "op";
    case OpCode::kEnter: return "prim::Enter";
    case OpCode::kExit: return "prim::Exit";
    case OpCode::kMove: return "move";
    case OpCode::kJump: return "jump";
    case OpCode::kJumpIfFalse: return "prim::If";
    case OpCode::kLoopTest: return "prim::Loop";
    case OpCode::kGetAttr: return "prim::GetAttr";
    case OpCode::kSetAttr: return "prim::SetAttr";
    case OpCode::kCallMethod: return "prim::CallMethod";
    case OpCode::kCallFunction: return "prim::CallFunction";
    case OpCode::kCallValue: return "prim::CallValue";
    case OpCode::kCallOp: return "op";
    case OpCode::kCreateObject: return "prim::CreateObject";
    case OpCode::kListConstruct: return "prim::ListConstruct";
    case OpCode::kTupleConstruct: return "prim::TupleConstruct";
    case OpCode::kDictConstruct: return "prim::DictConstruct";
    case OpCode::kListUnpack: return "prim::ListUnpack";
    case OpCode::kTupleUnpack: return "prim::TupleUnpack";
    case OpCode::kTupleIndex: return "prim::TupleIndex";
    case OpCode::kIsInstance: return "prim::isinstance";
    case OpCode::kMakeFuture: return "prim::fork";
    case OpCode::kWait: return "prim::wait";
    case OpCode::kPlan: return "prim::Plan";
    case OpCode::kReturn: return "return";
  }
  return "";
}

}  // namespace

std::string kind_name(const Instruction& instruction) {
  return instruction.op ? instruction.op->schema.full_name() : code_name(instruction.code);
}

std::unique_ptr<Program> Program::compile(const Graph& graph, std::string name, const PlanSettings& settings) {
  static std::atomic<uint64_t> next_id{1};
  auto program = std::make_unique<Program>();
  program->id = next_id.fetch_add(1, std::memory_order_relaxed);
  program->name = std::move(name);
  ProgramBuilder(graph, *program, settings).build();
  return program;
}

PlanTotals plan_totals(const Program& program) {
  PlanTotals totals;
  for (const auto& detail : program.details) {
    if (!detail->plan) continue;
    ++totals.plans;
    totals.calls += call_count(*detail->plan);
    totals.arena_bytes = std::max(totals.arena_bytes, detail->plan->arena_bytes);
  }
  return totals;
}

std::string to_string(const Program& program) {
  std::ostringstream out;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    out << i << ": ";
    for (uint32_t k = 0; k < instruction.output_count; ++k) {
      const uint32_t reg = program.outputs[instruction.outputs_begin + k];
      if (reg == kNoRegister) {
        out << "_ ";
      } else {
        out << "r" << reg << " ";
      }
    }
    if (instruction.output_count > 0) out << "= ";
    out << kind_name(instruction);
    const std::string& name = program.details[instruction.detail]->name;
    if (!name.empty()) out << "[" << name << "]";
    uint32_t operand = instruction.operands_begin;
    for (uint32_t k = 0; k < instruction.argument_count; ++k) {
      if (operand < instruction.operands_end && program.operands[operand].slot == instruction.arguments_begin + k) {
        out << " r" << program.operands[operand].reg << (program.operands[operand].is_last ? "!" : "");
        ++operand;
      } else {
        out << " const";
      }
    }
    if (instruction.code == OpCode::kLoopTest) out << " r" << instruction.index;
    if (instruction.code <= OpCode::kLoopTest && instruction.code >= OpCode::kJump) out << " -> " << instruction.target;
    out << "\n";
    if (const auto& plan = program.details[instruction.detail]->plan) out << to_string(*plan);
  }
  return out.str();
}

}  // namespace tensord::jit
