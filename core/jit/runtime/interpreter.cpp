#include "core/jit/runtime/interpreter.h"

#include <algorithm>
#include <new>

#include "core/autograd/anomaly.h"
#include "core/base/clock.h"
#include "core/base/queued_error.h"
#include "core/jit/runtime/instructions.h"
#include "core/ops/run.h"

namespace tensord::jit {

using ops::Value;

namespace {

constexpr size_t kMaxContexts = 10'000;

// An Error whose message already contains the source location, so callers add nothing.
class LocatedError final : public Error {
 public:
  using Error::Error;
};

// In one line, but for what a script raised, whose message stays as it is.
std::string at_location(const char* message, const Program& program, const Instruction& instruction,
                        bool is_raised = false) {
  std::string text = message;
  if (!is_raised) std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string place = program.details[instruction.detail]->location.str();
  return place.empty() ? text : text + " (" + place + ")";
}

// The location of a call, for autograd's anomaly mode.
struct Place {
  const Program& program;
  const uint32_t& pc;
};

std::string describe_place(const void* context) {
  const auto& [program, pc] = *static_cast<const Place*>(context);
  const std::string place = program.details[program.instructions[pc].detail]->location.str();
  return place.empty() ? program.name : concat(program.name, " (", place, ")");
}

void clear(Activation& activation) {
  std::fill(activation.registers.begin(), activation.registers.end(), Value());
  std::fill(activation.arguments.begin(), activation.arguments.end(), Value());
  activation.returns.clear();
  activation.call_arguments.clear();
  activation.program_id = 0;
}

// Returns whether the loop continues; if so, outputs and increments its counter.
bool take_loop_turn(Value* state, Value* counter) {
  const int64_t count = state[1].to_int();
  if (!state[2].to_bool() || count >= state[0].to_int()) return false;
  if (counter) *counter = Value(count);
  state[1] = Value(count + 1);
  return true;
}

void store(const Program& program, const Instruction& instruction, std::vector<Value>& returns, Value* registers) {
  // Not check_internal, which would build the name, and allocate, for every instruction.
  if (returns.size() < instruction.output_count) {
    fail(ErrorCode::kInternal, kind_name(instruction), " gave ", returns.size(), " values instead of ",
         instruction.output_count);
  }
  for (uint32_t i = 0; i < instruction.output_count; ++i) {
    const uint32_t reg = program.outputs[instruction.outputs_begin + i];
    if (reg != kNoRegister) registers[reg] = std::move(returns[i]);
  }
  returns.clear();
}

void release_arguments(const Program& program, const Instruction& instruction, Value* slots) {
  for (uint32_t i = instruction.operands_begin; i < instruction.operands_end; ++i) {
    slots[program.operands[i].slot] = Value();
  }
}

}  // namespace

Value Interpreter::run(const Program& program, std::span<Value> arguments) {
  struct DepthGuard {
    size_t& depth;
    ~DepthGuard() { --depth; }
  } guard{++frame_.depth_};
  if (frame_.depth_ > kMaxCallDepth) {
    fail(ErrorCode::kResourceExhausted, program.name, ": calls nest deeper than ", kMaxCallDepth);
  }
  Activation& activation = enter(program, arguments);
  const size_t entered = frame_.entered_.size();
  uint32_t pc = 0;
  const Place here{program, pc};
  const autograd::OriginScope origin(describe_place, &here);
  try {
    Value result = execute(program, activation, pc);
    if (frame_.entered_.size() > entered) frame_.entered_.resize(entered);
    return result;
  } catch (const LocatedError&) {
    unwind(activation, entered);
    throw;
  } catch (const QueuedError&) {
    unwind(activation, entered);
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) frame_.entered_.resize(entered);
    unwind(activation, entered);
    if (error.code() == ErrorCode::kCancelled) throw;
    const bool is_raised = error.code() == ErrorCode::kScriptRaised;
    throw LocatedError(error.code(), at_location(error.what(), program, program.instructions[pc], is_raised));
  } catch (const std::bad_alloc&) {
    unwind(activation, entered);
    const Instruction& instruction = program.instructions[pc];
    const std::string message = kind_name(instruction) + ": out of memory";
    throw LocatedError(ErrorCode::kResourceExhausted, at_location(message.c_str(), program, instruction));
  } catch (const std::exception& error) {
    unwind(activation, entered);
    const Instruction& instruction = program.instructions[pc];
    const std::string message = kind_name(instruction) + ": " + error.what();
    throw LocatedError(ErrorCode::kInternal, at_location(message.c_str(), program, instruction));
  }
}

void Interpreter::enter_context(const Value& context) {
  if (frame_.entered_.size() >= kMaxContexts) {
    fail(ErrorCode::kResourceExhausted, "prim::Enter: contexts nest deeper than ", kMaxContexts);
  }
  frame_.entered_.push_back(context);
}

void Interpreter::unwind(Activation& activation, size_t count) {
  while (library_ && frame_.entered_.size() > count) {
    const Value context = std::move(frame_.entered_.back());
    frame_.entered_.pop_back();
    try {
      std::vector<Value> arguments{context, Value(), Value(), Value()};
      run(*library_->find_method(*context.to_object()->type, "__exit__").program, arguments);
    } catch (const std::exception&) {
      // Reports the first error.
    }
  }
  clear(activation);
}

Activation& Interpreter::enter(const Program& program, std::span<Value> arguments) {
  while (frame_.activations_.size() < frame_.depth_) frame_.activations_.push_back(std::make_unique<Activation>());
  Activation& activation = *frame_.activations_[frame_.depth_ - 1];
  if (activation.program_id != program.id) {
    activation.registers.assign(program.register_count, Value());
    activation.arguments.assign(program.argument_template.begin(), program.argument_template.end());
    activation.program_id = program.id;
  }
  if (arguments.size() != program.input_registers.size()) {
    fail(ErrorCode::kInvalidArgument, program.name, ": expected ", program.input_registers.size(),
         " arguments but got ", arguments.size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const uint32_t reg = program.input_registers[i];
    Value argument = std::move(arguments[i]);
    if (reg != kNoRegister) activation.registers[reg] = std::move(argument);
  }
  return activation;
}

namespace {

// Instructions on numbers, lists and jumps: faster than a check for cancellation.
bool is_short(const Instruction& instruction) {
  switch (instruction.code) {
    case OpCode::kMove:
    case OpCode::kJump:
    case OpCode::kJumpIfFalse:
    case OpCode::kLoopTest: return true;
    case OpCode::kOp: return instruction.op->kind == ops::OpKind::kScript;
    default: return false;
  }
}

constexpr int kShortBetweenLooks = 64;

}  // namespace

Value Interpreter::execute(const Program& program, Activation& activation, uint32_t& pc) {
  Value* const registers = activation.registers.data();
  Value* const slots = activation.arguments.data();
  std::vector<Value>& returns = activation.returns;
  const bool is_profiled = options_.profile != nullptr;
  int until_look = 0;
  for (;;) {
    const Instruction& instruction = program.instructions[pc];
    if (options_.is_cancelled && (--until_look <= 0 || !is_short(instruction))) {
      until_look = kShortBetweenLooks;
      if ((*options_.is_cancelled)()) fail(ErrorCode::kCancelled, program.name, ": cancelled");
    }
    const int64_t start_ns = is_profiled ? Clock::system().now_ns() : 0;
    for (uint32_t i = instruction.operands_begin; i < instruction.operands_end; ++i) {
      const Operand& operand = program.operands[i];
      Value& source = registers[operand.reg];
      slots[operand.slot] = operand.is_last ? std::move(source) : source;
    }
    const std::span<const Value> arguments(slots + instruction.arguments_begin, instruction.argument_count);
    uint32_t next = pc + 1;
    returns.clear();
    switch (instruction.code) {
      case OpCode::kOp: ops::run(*instruction.op, arguments, returns); break;
      case OpCode::kEnter: enter_context(arguments[0]); break;
      case OpCode::kExit:
        check(!frame_.entered_.empty(), "prim::Exit: there is no context to leave");
        frame_.entered_.pop_back();
        break;
      case OpCode::kMove: returns.assign(arguments.begin(), arguments.end()); break;
      case OpCode::kJump: next = instruction.target; break;
      case OpCode::kJumpIfFalse:
        if (!arguments[0].to_bool()) next = instruction.target;
        break;
      case OpCode::kLoopTest: {
        const uint32_t counter_register = program.outputs[instruction.outputs_begin];
        Value* counter = counter_register == kNoRegister ? nullptr : registers + counter_register;
        next = take_loop_turn(registers + instruction.index, counter) ? pc + 1 : instruction.target;
        break;
      }
      case OpCode::kCallMethod:
      case OpCode::kCallFunction:
      case OpCode::kCallValue: call(program, instruction, activation); break;
      case OpCode::kCallOp: call_op(*instruction.op, arguments, returns); break;
      case OpCode::kPlan: run_plan(*program.details[instruction.detail], arguments, returns); break;
      case OpCode::kReturn: {
        Value result = arguments[0];
        release_arguments(program, instruction, slots);
        return result;
      }
      case OpCode::kTupleConstruct:
        returns.push_back(frame_.make_tuple(arguments, program.details[instruction.detail]->type));
        break;
      default: execute_data(instruction, *program.details[instruction.detail], arguments, returns); break;
    }
    release_arguments(program, instruction, slots);
    if (instruction.code != OpCode::kLoopTest) store(program, instruction, returns, registers);
    if (is_profiled) record(instruction, start_ns);
    pc = next;
  }
}

void Interpreter::call(const Program& program, const Instruction& instruction, Activation& activation) {
  Value* const slots = activation.arguments.data();
  const Value* const begin = slots + instruction.arguments_begin;
  std::vector<Value>& arguments = activation.call_arguments;
  arguments.assign(begin, begin + instruction.argument_count);
  // The callee owns its arguments, so that it can free them early.
  release_arguments(program, instruction, slots);
  const InstructionDetail& detail = *program.details[instruction.detail];
  const auto run_callee = [&](std::vector<Value>& given) {
    const Program& callee = find_callee(detail, instruction.code, given);
    return run(callee, given);
  };
  const bool is_hooked = hooks_ && instruction.code == OpCode::kCallMethod && detail.name == kHookedMethod;
  Value result = is_hooked ? hooks_->call(arguments, run_callee) : run_callee(arguments);
  arguments.clear();
  activation.returns.push_back(std::move(result));
}

void Interpreter::call_op(const ops::Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  const ops::MethodCallerScope scope(*this);
  ops::run(op, arguments, returns);
  if (op.schema.returns.empty()) returns.emplace_back();
}

Value Interpreter::call_method(const ops::ObjectPtr& object, const std::string& method, std::vector<Value> arguments) {
  check_internal(library_ != nullptr, "call of ", method, " without a library");
  arguments.insert(arguments.begin(), Value(object));
  return run(*library_->find_method(*object->type, method).program, arguments);
}

const Program& Interpreter::find_callee(const InstructionDetail& detail, OpCode code, std::vector<Value>& arguments) {
  check_internal(library_ != nullptr, "call of ", detail.name, " without a library");
  if (code == OpCode::kCallValue) {
    const IntrusivePtr<ops::FunctionObject> function = arguments.at(0).to_function();
    arguments.erase(arguments.begin());
    arguments.insert(arguments.begin(), function->captured.begin(), function->captured.end());
    check_internal(function->function != nullptr, "function value ", function->name, " has no body");
    return library_->program_of(*static_cast<const Function*>(function->function));
  }
  const ops::Type* receiver = code == OpCode::kCallMethod ? arguments.at(0).to_object()->type.get() : nullptr;
  const CallTarget* known = detail.target.load(std::memory_order_acquire);
  if (known && known->receiver == receiver) return *known->program;
  const CallTarget& found =
      receiver ? library_->find_method(*receiver, detail.name) : library_->find_function(detail.name);
  detail.target.store(&found, std::memory_order_release);
  return *found.program;
}

void Interpreter::record(const Instruction& instruction, int64_t start_ns) {
  const bool is_call = instruction.code == OpCode::kCallMethod || instruction.code == OpCode::kCallFunction ||
                       instruction.code == OpCode::kCallValue || instruction.code == OpCode::kPlan;
  if (is_call) return;
  options_.profile->add(kind_name(instruction), "", start_ns, Clock::system().now_ns() - start_ns, 0, 0);
}

void Interpreter::run_plan(const InstructionDetail& detail, std::span<const Value> arguments,
                           std::vector<Value>& returns) {
  // The result of a nested call is not a result of the run.
  const std::span<const int32_t> result_numbers =
      frame_.depth_ == 1 ? detail.result_numbers : std::span<const int32_t>();
  const PlanCall* call = nullptr;
  try {
    frame_.plans_.run(*detail.plan, arguments, returns, options_, result_numbers, &call);
  } catch (const QueuedError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled || !call) throw;
    const PlanCall& failed = *call;
    const std::string name = failed.op->schema.name;
    const std::string place = failed.location.str();
    const std::string message =
        std::string_view(error.what()).starts_with(name) ? error.what() : concat(name, ": ", error.what());
    throw LocatedError(error.code(), place.empty() ? message : concat(message, " (", place, ")"));
  }
}

}  // namespace tensord::jit
