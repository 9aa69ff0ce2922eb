#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/autograd/hooks/call_hooks.h"
#include "core/autograd/node.h"
#include "core/jit/runtime/program_library.h"
#include "core/ops/schema.h"
#include "core/ops/value.h"

namespace tensord::jit {

inline constexpr const char* kHookedMethod = "forward";

// A call of a module's forward that has hooks.
struct HookedCall {
  // The name that the hook was registered by, "" for the model itself.
  const std::string& module;
  // Of its forward, without self: arguments are by position, and have these names.
  const ops::Schema& schema;
};

// What a hook gives takes the place of the arguments, or of the result; it must fit the schema. Hooks run on the thread
// that runs the method, in the order they were registered.
using ForwardPreHook = std::function<std::optional<std::vector<ops::Value>>(const HookedCall& call,
                                                                            const std::vector<ops::Value>& arguments)>;
using ForwardHook = std::function<std::optional<ops::Value>(
    const HookedCall& call, const std::vector<ops::Value>& arguments, const ops::Value& result)>;
// In the backward pass, on its threads, with the gradients of the arguments that are tensors and of the result, a
// tensor or a tuple; undefined where there is none. May replace those of the arguments, or, before the module's own
// backward, those of the result.
using FullBackwardHook = std::function<std::optional<std::vector<Tensor>>(
    const HookedCall& call, const std::vector<Tensor>& grad_inputs, const std::vector<Tensor>& grad_outputs)>;
using FullBackwardPreHook =
    std::function<std::optional<std::vector<Tensor>>(const HookedCall& call, const std::vector<Tensor>& grad_outputs)>;

// Hooks of a loaded model's modules, and the programs that run while there are any: the methods as they are written,
// with their calls. Thread-safe.
class ModuleHooks {
 public:
  using Hook = std::variant<ForwardPreHook, ForwardHook, FullBackwardHook, FullBackwardPreHook>;

  // `functions` must outlive it; `prepare` copies a function's graph.
  ModuleHooks(const FunctionLibrary& functions, ProgramLibrary::Prepare prepare);

  // `schema`: of the module's forward, with self. `prepend`: before those that are there.
  autograd::HookHandle add(const ops::ObjectPtr& module, const std::string& name, const ops::Schema& schema, Hook hook,
                           bool prepend);
  // Whether there are any.
  bool is_active() const;
  ProgramLibrary& library() { return library_; }

  // Calls `run` with the arguments, self in front, and what the module's hooks make of them.
  using Run = std::function<ops::Value(std::vector<ops::Value>& arguments)>;
  ops::Value call(std::vector<ops::Value>& arguments, const Run& run) const;

 private:
  struct OfModule;
  struct State;
  std::shared_ptr<State> state_;
  ProgramLibrary library_;
};

}  // namespace tensord::jit
