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

// A call of a module's forward, as passed to its hooks.
struct HookedCall {
  // The name under which the hook was registered; "" for the model itself.
  const std::string& module;
  // The schema of its forward, without self: names of the positional arguments.
  const ops::Schema& schema;
};

// The returned values replace the arguments, or the result; they must match the schema. Hooks run on the thread that
// runs the method, in the order of registration.
using ForwardPreHook = std::function<std::optional<std::vector<ops::Value>>(const HookedCall& call,
                                                                            const std::vector<ops::Value>& arguments)>;
using ForwardHook = std::function<std::optional<ops::Value>(
    const HookedCall& call, const std::vector<ops::Value>& arguments, const ops::Value& result)>;
// Called during the backward pass, on its threads, with the gradients of the tensor arguments and of the result, which
// is a tensor or a tuple; undefined tensors if there are none. May replace the gradients of the arguments, or, before
// the module's own backward, those of the result.
using FullBackwardHook = std::function<std::optional<std::vector<Tensor>>(
    const HookedCall& call, const std::vector<Tensor>& grad_inputs, const std::vector<Tensor>& grad_outputs)>;
using FullBackwardPreHook =
    std::function<std::optional<std::vector<Tensor>>(const HookedCall& call, const std::vector<Tensor>& grad_outputs)>;

// The module's activations are computed again in the backward pass instead of kept (core/autograd/checkpoint.h). Its
// buffers are as after the first call then.
struct CheckpointCall {};

// Hooks of a loaded model's modules, and the programs that run while there are any: the methods as written, with their
// calls. Thread-safe.
class ModuleHooks {
 public:
  using Hook = std::variant<ForwardPreHook, ForwardHook, FullBackwardHook, FullBackwardPreHook, CheckpointCall>;

  // `functions` must outlive this object; `prepare` copies a function's graph.
  ModuleHooks(const FunctionLibrary& functions, ProgramLibrary::Prepare prepare);

  // `schema` is that of the module's forward, with self. `prepend`: before existing hooks.
  autograd::HookHandle add(const ops::ObjectPtr& module, const std::string& name, const ops::Schema& schema, Hook hook,
                           bool prepend);
  // Whether any hook is registered.
  bool is_active() const;
  ProgramLibrary& library() { return library_; }

  // Calls `run` with the arguments, self first, wrapped by the module's hooks.
  using Run = std::function<ops::Value(std::vector<ops::Value>& arguments)>;
  ops::Value call(std::vector<ops::Value>& arguments, const Run& run) const;

 private:
  struct OfModule;
  struct State;
  ops::Value run_checkpointed(std::vector<ops::Value>& arguments, const Run& run) const;

  std::shared_ptr<State> state_;
  mutable ProgramLibrary library_;
};

}  // namespace tensord::jit
