// Runs a module's methods, with hooks around calls.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/pipeline.h"
#include "core/jit/runtime/arguments.h"
#include "core/jit/runtime/interpreter.h"
#include "core/jit/runtime/module_impl.h"
#include "core/jit/runtime/module_tensors.h"
#include "core/tensor/device_runtime.h"

namespace tensord::jit {

using autograd::HookHandle;
using ops::Value;

namespace {

void check_records(const char* what, const LoadOptions& options) {
  if (options.for_training) return;
  fail(ErrorCode::kFailedPrecondition, what, ": the model was not loaded for training, so nothing of it is recorded");
}

bool is_container(const ops::Type& type) {
  return type.kind() == ops::TypeKind::kList || type.kind() == ops::TypeKind::kDict;
}

// Finds what a second run of a module's forward, in the backward pass, would do twice or find changed. Buffers may
// change, since they are put back.
class LastingEffects {
 public:
  explicit LastingEffects(const FunctionLibrary& functions) : functions_(functions) {}

  // Says what it is; empty: nothing.
  std::string find(const Function& forward) {
    call(&forward, forward.name);
    while (!pending_.empty() && effect_.empty()) {
      const Function* const function = pending_.back();
      pending_.pop_back();
      for_each_node(*function->graph->block(), [this](const Node& node) { visit(node); });
    }
    if (effect_.empty() && writes_containers_ && !container_.empty())
      effect_ = concat("the code may change the attribute '", container_, "'");
    return effect_;
  }

 private:
  void visit(const Node& node) {
    switch (node.kind()) {
      case NodeKind::kSetAttr:
        if (!is_buffer(node)) effect_ = concat("the code sets the attribute '", node.name(), "'");
        return;
      case NodeKind::kGetAttr:
        if (is_container(*node.output()->type())) container_ = node.name();
        return;
      case NodeKind::kOp:
        writes_containers_ =
            writes_containers_ || std::ranges::any_of(node.op()->schema.arguments, [](const ops::Argument& argument) {
              return argument.alias.is_write && is_container(*argument.type);
            });
        return;
      case NodeKind::kCallMethod:
        return call(functions_.find_method(node.input()->type()->name(), node.name()), node.name());
      case NodeKind::kCallFunction: return call(functions_.find_function(node.name()), node.name());
      case NodeKind::kCallValue: effect_ = "the code calls a function that is a value"; return;
      default: return;
    }
  }

  static bool is_buffer(const Node& node) {
    const ops::Type& owner = *node.input()->type();
    if (owner.kind() != ops::TypeKind::kClass) return false;
    const auto& names = static_cast<const ops::ClassType&>(owner).buffer_names;
    return std::ranges::find(names, node.name()) != names.end();
  }

  void call(const Function* function, const std::string& name) {
    if (!function) {
      effect_ = concat("the call of '", name, "' is not known before it runs");
    } else if (seen_.insert(function).second) {
      pending_.push_back(function);
    }
  }

  const FunctionLibrary& functions_;
  std::vector<const Function*> pending_;
  std::set<const Function*> seen_;
  std::string effect_, container_;
  bool writes_containers_ = false;
};

}  // namespace

std::shared_ptr<const Program> Method::Impl::specialize(std::span<const Value> bound, const PassOptions& passes) const {
  const GradModeGuard guard(own_mode(options));
  std::unique_ptr<Graph> copy = graph->clone();
  specialize_inputs(*copy, bound);
  PassContext context;
  context.functions = functions;
  context.precision = options.precision;
  context.failures = pass_failures;
  context.packs = std::shared_ptr<ops::PackStore>(std::shared_ptr<void>(), packs);  // owned by the module
  run_pipeline(copy, context, passes, plan_pipeline());
  PlanSettings settings;
  settings.threads = thread_budget();
  settings.precision = options.precision;
  settings.packs = packs;
  settings.splits_samples = !passes.disabled.contains("split_samples");
  settings.reuses_in_place = !passes.disabled.contains("in_place");
  settings.shares_memory = !passes.disabled.contains("memory_plan");
  settings.alter = options.plan.alter;
  std::shared_ptr<const Program> made = Program::compile(*copy, program->name, settings);
  if (!options.device.is_host()) synchronize(options.device);  // constants that were computed here
  return plan_totals(*made).plans > 0 ? made : nullptr;
}

Method::Method(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Method::~Method() = default;
const std::string& Method::name() const { return impl_->name; }
const ops::Schema& Method::schema() const { return impl_->schema; }
bool Method::changes_state() const { return impl_->changes_state; }
const Graph& Method::graph() const { return *impl_->graph; }

Value Method::run(Frame& frame, std::span<const Value> arguments, RunOptions options) const {
  const GradModeGuard guard(impl_->options.for_training ? execution_context().grad_mode : own_mode(impl_->options));
  Numerics numerics = execution_context().numerics;
  if (impl_->options.allows_tf32) numerics.allows_tf32_products = numerics.allows_tf32_convolutions = true;
  const ContextPart<&ExecutionContext::numerics> numerics_scope(numerics);
  // Weights are packed for inference at load, in the model's own precision.
  DispatchKeySet excluded = execution_context().excluded_keys;
  if (!impl_->options.for_training) excluded |= Functionality::kAutocast;
  const ContextPart<&ExecutionContext::excluded_keys> excluded_scope(excluded);
  std::vector<Value>& bound = frame.bound_;
  impl_->bind(arguments, bound);
  if (impl_->hooks->is_active()) [[unlikely]]
    return impl_->run_hooked(frame, options);
  const Program& program = impl_->specializations
                               ? impl_->specializations->find(frame, bound, options.plans_in_background)
                               : *impl_->program;
  options.poison = impl_->options.plan.poison;
  return Interpreter(frame, impl_->library, options).run(program, bound);
}

std::shared_ptr<const Program> Method::specialize(std::span<const Value> arguments, const PassOptions& passes) const {
  std::vector<Value> bound;
  impl_->bind(arguments, bound);
  return impl_->specialize(bound, passes);
}

PlanStats Method::plan_stats() const {
  PlanStats stats = impl_->specializations ? impl_->specializations->stats() : PlanStats();
  stats.failed_passes = impl_->pass_failures->counts();
  return stats;
}

// Runs the method as written, because optimization could remove a call that has hooks.
Value Method::Impl::run_hooked(Frame& frame, const RunOptions& options) const {
  const Program& written = *hooks->library().find_method(*self->type, name).program;
  Interpreter interpreter(frame, &hooks->library(), options, hooks);
  if (name != kHookedMethod) return interpreter.run(written, frame.bound_);
  return hooks->call(frame.bound_, [&](std::vector<Value>& arguments) { return interpreter.run(written, arguments); });
}

HookHandle Module::Impl::add_hook(const std::string& name, ModuleHooks::Hook hook, bool prepend) {
  const MemoryOwnerScope charge(owner);
  const GradModeGuard guard(own_mode(options));
  const ops::ObjectPtr module = find_module(object, name);
  const MutexLock lock(compile_mutex);
  const Function* forward = functions->find_method(module->type->name(), kHookedMethod);
  if (!forward) fail(ErrorCode::kNotFound, module->type->name(), " has no method ", kHookedMethod);
  if (std::holds_alternative<CheckpointCall>(hook)) {
    const std::string effect = LastingEffects(*functions).find(*forward);
    if (!effect.empty()) fail(ErrorCode::kUnimplemented, name, ": its activations cannot be computed again: ", effect);
  }
  keeps_functions = true;  // the programs of hooked runs refer to them
  return hooks->add(module, name, forward->schema, std::move(hook), prepend);
}

bool Module::has_hooks() const { return impl_->hooks->is_active(); }

HookHandle Module::register_forward_pre_hook(const std::string& module, ForwardPreHook hook, bool prepend) {
  return impl_->add_hook(module, std::move(hook), prepend);
}

HookHandle Module::register_forward_hook(const std::string& module, ForwardHook hook, bool prepend) {
  return impl_->add_hook(module, std::move(hook), prepend);
}

HookHandle Module::checkpoint_activations(const std::string& module) {
  check_records("checkpoint_activations", impl_->options);
  return impl_->add_hook(module, CheckpointCall(), /*prepend=*/false);
}

HookHandle Module::register_full_backward_hook(const std::string& module, FullBackwardHook hook, bool prepend) {
  check_records("register_full_backward_hook", impl_->options);
  return impl_->add_hook(module, std::move(hook), prepend);
}

HookHandle Module::register_full_backward_pre_hook(const std::string& module, FullBackwardPreHook hook, bool prepend) {
  check_records("register_full_backward_pre_hook", impl_->options);
  return impl_->add_hook(module, std::move(hook), prepend);
}

}  // namespace tensord::jit
