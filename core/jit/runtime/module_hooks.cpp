#include "core/jit/runtime/module_hooks.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "core/autograd/checkpoint.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/jit/runtime/arguments.h"
#include "core/jit/runtime/interpreter.h"
#include "core/jit/runtime/module_tensors.h"
#include "core/tensor/grad_mode.h"

namespace tensord::jit {

using ops::Value;

struct ModuleHooks::OfModule {
  ops::ObjectPtr module;  // keeps the address unique
  std::string name;
  ops::Schema schema;  // without self
  Hook hook;
};

struct ModuleHooks::State {
  using Hooks = std::vector<std::shared_ptr<const OfModule>>;
  std::atomic<size_t> count{0};
  Mutex mutex;
  std::map<const ops::Object*, Hooks> hooks TENSORD_GUARDED_BY(mutex);

  // Returns a copy, so that hooks may add and remove hooks.
  Hooks of(const ops::Object* module) {
    const MutexLock lock(mutex);
    const auto found = hooks.find(module);
    return found == hooks.end() ? Hooks() : found->second;
  }
  void remove(const OfModule* hook) {
    const MutexLock lock(mutex);
    const auto found = hooks.find(hook->module.get());
    if (found == hooks.end()) return;
    count -= std::erase_if(found->second, [&](const auto& item) { return item.get() == hook; });
    if (found->second.empty()) hooks.erase(found);
  }
};

namespace {

using Tensors = std::vector<Tensor>;

// The tensors among a call's values, with their positions.
struct TensorsOf {
  explicit TensorsOf(const std::vector<Value>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].is_strided()) continue;
      places.push_back(i);
      tensors.push_back(values[i].to_tensor());
    }
  }
  void write_to(std::vector<Value>& values) const {
    for (size_t i = 0; i < places.size(); ++i) values[places[i]] = Value(tensors[i]);
  }
  std::vector<size_t> places;
  Tensors tensors;
};

void watch_result(autograd::CallHooks& hooks, const std::string& name, Value& result) {
  std::vector<Value> items;
  if (result.is_tuple()) {
    items = result.to_tuple()->items;
  } else {
    check(result.is_strided(), "full backward hook of '", name, "': forward gives ", result.tag_name(),
          ", and must give a tensor or a tuple of tensors");
    items.push_back(result);
  }
  TensorsOf found(items);
  hooks.watch_outputs(found.tensors);
  found.write_to(items);
  result = result.is_tuple() ? Value(make_intrusive<ops::TupleObject>(std::move(items), result.to_tuple()->type))
                             : items.front();
}

// Sets the buffers of a module and its submodules back, by restore() or where an error ends the scope.
class KeptBuffers {
 public:
  explicit KeptBuffers(const ops::ObjectPtr& module) {
    const NoGradGuard no_grad;
    std::set<const TensorImpl*> buffers;
    for (const auto& [name, tensor] : collect_members(module, &ops::ClassType::buffer_names))
      buffers.insert(tensor.impl());
    for (const auto& [name, slot] : collect_member_slots(module)) {
      if (!slot->is_strided() || !buffers.contains(slot->to_tensor().impl())) continue;
      const Tensor& tensor = slot->to_tensor();
      kept_.push_back({slot, tensor, tensor.clone(), tensor.version()});
    }
  }
  ~KeptBuffers() {
    if (is_restored_) return;
    try {
      restore();
    } catch (const Error&) {
      // Why the scope ended says more.
    }
  }
  void restore() {
    is_restored_ = true;
    for (const Kept& one : kept_) {
      *one.slot = Value(one.tensor);
      if (one.tensor.version() != one.version) one.tensor.copy_from(one.copy);
    }
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  struct Kept {
    Value* slot;
    Tensor tensor, copy;
    uint32_t version;
  };
  std::vector<Kept> kept_;
  bool is_restored_ = false;
};

}  // namespace

ModuleHooks::ModuleHooks(const FunctionLibrary& functions, ProgramLibrary::Prepare prepare)
    : state_(std::make_shared<State>()), library_(functions, std::move(prepare)) {}

bool ModuleHooks::is_active() const { return state_->count.load(std::memory_order_acquire) > 0; }

autograd::HookHandle ModuleHooks::add(const ops::ObjectPtr& module, const std::string& name, const ops::Schema& schema,
                                      Hook hook, bool prepend) {
  auto made = std::make_shared<OfModule>(OfModule{module, name, schema, std::move(hook)});
  made->schema.arguments.erase(made->schema.arguments.begin());
  made->schema.name = name.empty() ? "forward" : name + ".forward";
  const MutexLock lock(state_->mutex);
  auto& hooks = state_->hooks[module.get()];
  hooks.insert(prepend ? hooks.begin() : hooks.end(), made);
  ++state_->count;
  return autograd::HookHandle([state = std::weak_ptr(state_), made = std::weak_ptr<const OfModule>(made)] {
    const auto known = state.lock();
    const auto hook = made.lock();
    if (known && hook) known->remove(hook.get());
  });
}

// The module must outlive the backward pass.
Value ModuleHooks::run_checkpointed(std::vector<Value>& arguments, const Run& run) const {
  const autograd::CheckpointScope scope([this, arguments] {
    const ops::ObjectPtr& module = arguments.front().to_object();
    KeptBuffers kept(module);
    Frame frame;
    std::vector<Value> given = arguments;
    Interpreter(frame, &library_, {}, this).run(*library_.find_method(*module->type, kHookedMethod).program, given);
    kept.restore();
  });
  return run(arguments);
}

Value ModuleHooks::call(std::vector<Value>& arguments, const Run& run) const {
  const State::Hooks hooks = state_->of(arguments.at(0).to_object().get());
  if (hooks.empty()) return run(arguments);
  const Value self = arguments.front();
  std::vector<Value> given(std::make_move_iterator(arguments.begin() + 1), std::make_move_iterator(arguments.end()));
  std::vector<autograd::CallHooks::Hook> backward;
  std::vector<autograd::CallHooks::PreHook> backward_pre;
  for (const auto& item : hooks) {
    if (const auto* hook = std::get_if<ForwardPreHook>(&item->hook)) {
      if (const auto changed = (*hook)({item->name, item->schema}, given)) {
        given.clear();
        bind_arguments(item->schema, *changed, given);
      }
    }
    if (const auto* hook = std::get_if<FullBackwardHook>(&item->hook)) {
      backward.push_back([item, hook](const Tensors& inputs, const Tensors& outputs) {
        return (*hook)({item->name, item->schema}, inputs, outputs);
      });
    }
    if (const auto* hook = std::get_if<FullBackwardPreHook>(&item->hook)) {
      backward_pre.push_back([item, hook](const Tensors& outputs) {
        return (*hook)({item->name, item->schema}, outputs);
      });
    }
  }
  const bool watches = !backward.empty() || !backward_pre.empty();
  const auto around = std::make_shared<autograd::CallHooks>(std::move(backward), std::move(backward_pre));
  if (watches) {
    TensorsOf found(given);
    around->watch_inputs(found.tensors);
    found.write_to(given);
  }
  std::vector<Value> all{self};
  all.insert(all.end(), given.begin(), given.end());
  const auto is_checkpoint = [](const auto& item) { return std::holds_alternative<CheckpointCall>(item->hook); };
  Value result = std::ranges::any_of(hooks, is_checkpoint) ? run_checkpointed(all, run) : run(all);
  for (const auto& item : hooks) {
    const auto* hook = std::get_if<ForwardHook>(&item->hook);
    if (!hook) continue;
    if (const auto changed = (*hook)({item->name, item->schema}, given, result)) {
      result = coerce(*changed, item->schema.returns.at(0).type, item->schema.name + ": the forward hook's result");
    }
  }
  if (watches) watch_result(*around, hooks.front()->name, result);
  return result;
}

}  // namespace tensord::jit
