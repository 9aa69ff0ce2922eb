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

// Calls that may nest, in scripts that recurse.
inline constexpr size_t kMaxCallDepth = 500;

// Runs programs on one Frame. Made for one run; cheap.
class Interpreter final : private ops::MethodCaller {
 public:
  // `library` serves calls (null when the program makes none). `hooks` are put around calls of forward, where there are
  // some.
  Interpreter(Frame& frame, ProgramLibrary* library, RunOptions options = {}, const ModuleHooks* hooks = nullptr)
      : frame_(frame), library_(library), options_(options), hooks_(hooks) {}

  // Moves the arguments out of the span. Throws Error: the operator's own with the place in
  // the script appended, kScriptRaised with the script's message alone, kCancelled. Contexts of "with"
  // blocks are left by their __exit__ then, but not after kCancelled.
  ops::Value run(const Program& program, std::span<ops::Value> arguments);

 private:
  void enter_context(const ops::Value& context);
  // After an error: calls __exit__ of the contexts beyond the first `count`, and lets all values go.
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
