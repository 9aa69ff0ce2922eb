#pragma once

#include <span>

#include "core/jit/runtime/frame.h"
#include "core/jit/runtime/module_hooks.h"
#include "core/jit/runtime/program.h"
#include "core/jit/runtime/program_library.h"
#include "core/jit/runtime/run_options.h"
#include "core/ops/method_call.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Maximum depth of nested calls, for recursive scripts.
inline constexpr size_t kMaxCallDepth = 500;

// Runs programs on one Frame. Created for one run; cheap.
class Interpreter final : private ops::MethodCaller {
 public:
  // `library` resolves calls (null if the program makes none). `hooks`, if any, wrap calls of forward.
  Interpreter(Frame& frame, ProgramLibrary* library, RunOptions options = {}, const ModuleHooks* hooks = nullptr)
      : frame_(frame), library_(library), options_(options), hooks_(hooks) {}

  // Moves the arguments out of the span. Throws Error: an operator's error, or kScriptRaised with the script's
  // message, with the source location appended, kCancelled. On an error, __exit__ of open "with" contexts is called,
  // except after kCancelled.
  ops::Value run(const Program& program, std::span<ops::Value> arguments);

 private:
  void enter_context(const ops::Value& context);
  // After an error: calls __exit__ of the contexts beyond the first `count`, and releases all values.
  void unwind(Activation& activation, size_t count);
  Activation& enter(const Program& program, std::span<ops::Value> arguments);
  ops::Value execute(const Program& program, Activation& activation, uint32_t& pc);
  void call(const Program& program, const Instruction& instruction, Activation& activation);
  const Program& find_callee(const InstructionDetail& detail, OpCode code, std::vector<ops::Value>& arguments);
  void call_op(const ops::Op& op, std::span<const ops::Value> arguments, std::vector<ops::Value>& returns);
  ops::Value call_method(const ops::ObjectPtr& object, const std::string& method,
                         std::vector<ops::Value> arguments) override;
  void run_plan(const InstructionDetail& detail, std::span<const ops::Value> arguments,
                std::vector<ops::Value>& returns);
  void record(const Instruction& instruction, int64_t start_ns);

  Frame& frame_;
  ProgramLibrary* library_;
  const RunOptions options_;
  const ModuleHooks* hooks_;
};

}  // namespace tensord::jit
