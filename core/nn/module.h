#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace tensord::nn {

using Tensors = std::vector<Tensor>;
using autograd::HookHandle;

struct NamedTensor {
  std::string name;  // "layer1.0.weight"
  Tensor tensor;
};
// Parameters and persistent buffers by name, in the order of state_dict(). The tensors are the module's own.
using StateDict = std::vector<NamedTensor>;

// What load_state_dict found to be different: names that only the module, or only the state has.
struct StateDictDifference {
  std::vector<std::string> missing, unexpected;
};

class Module;

// May change the inputs, or the result, by giving new ones. Both are lists; most modules take and give one tensor.
using ForwardPreHook = std::function<std::optional<Tensors>(Module&, const Tensors& inputs)>;
using ForwardHook = std::function<std::optional<Tensors>(Module&, const Tensors& inputs, const Tensors& outputs)>;
// Called in the backward pass with the gradients of the inputs and of the results, undefined where there is none;
// may replace those of the inputs. The pre-hook is called before the module's own backward and may
// replace those of the results. The module must live until the backward pass has ended.
using BackwardHook =
    std::function<std::optional<Tensors>(Module&, const Tensors& grad_inputs, const Tensors& grad_outputs)>;
using BackwardPreHook = std::function<std::optional<Tensors>(Module&, const Tensors& grad_outputs)>;

// Hooks in the order they were registered; a handle takes its hook away again.
template <class Hook>
class HookList {
 public:
  HookHandle add(Hook hook) {
    auto item = std::make_shared<Hook>(std::move(hook));
    items_->push_back(item);
    return HookHandle([items = std::weak_ptr(items_), item] {
      if (const auto list = items.lock()) list->remove(item);
    });
  }
  bool empty() const { return items_->empty(); }
  // A copy, so that hooks may add and remove hooks.
  std::vector<std::shared_ptr<Hook>> items() const { return {items_->begin(), items_->end()}; }

 private:
  std::shared_ptr<std::list<std::shared_ptr<Hook>>> items_ = std::make_shared<std::list<std::shared_ptr<Hook>>>();
};

// A layer or model: parameters, buffers and modules inside of it, by name, with PyTorch's semantics. A
// derived class registers them in its constructor, keeps the handles it gets back, and writes forward().
// Modules are held by shared_ptr; one may be in several places. Thread-safety: as for a container; forward()
// of one module may run on several threads at once when the derived class says so and no hook is registered.
class Module {
 public:
  // `kind` is the class's name, for messages: "Linear".
  explicit Module(std::string kind) : kind_(std::move(kind)) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // The computation alone, without hooks.
  virtual Tensors forward(const Tensors& inputs) = 0;
  // The computation with its hooks, in this order: forward pre-hooks, forward, forward hooks; of each
  // kind the global ones first.
  Tensors run(Tensors inputs);
  // The same for modules with one result.
  template <class... T>
  Tensor operator()(const T&... inputs) {
    Tensors outputs = run({inputs...});
    check(outputs.size() == 1, kind_, ": expected one result but got ", outputs.size());
    return std::move(outputs.front());
  }

  const std::string& kind() const { return kind_; }
  bool is_training() const { return is_training_; }
  // Sets the mode of this module and those inside of it.
  virtual void train(bool is_training = true);
  void eval() { train(false); }
  void requires_grad_(bool value = true);
  // Sets the gradients to undefined, or to zeros.
  void zero_grad(bool set_to_none = true);
  // Converts floating parameters and buffers. The handles stay the same tensors.
  void to(DType dtype);
  // Moves all parameters and buffers. The handles stay the same tensors; gradients go.
  void to(Device device);
  // Calls `function` for the modules inside, innermost first, then for this one.
  void apply(const std::function<void(Module&)>& function);

  // This module first, then those inside, depth first in the order of registration. Tensors that are in
  // several places are named once, where they come first; modules too.
  std::vector<NamedTensor> named_parameters(bool recurse = true) const;
  std::vector<NamedTensor> named_buffers(bool recurse = true) const;
  std::vector<std::pair<std::string, Module*>> named_modules() const;
  Tensors parameters(bool recurse = true) const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const { return children_; }
  // "layer1.0", "" for itself. Throws Error{kNotFound}.
  Module& submodule(std::string_view name);

  // Of each module its parameters, then its persistent buffers, then the modules inside. Tensors in several places
  // come by each of their names.
  StateDict state_dict() const;
  // Copies into the module's own tensors. Differences of names are an Error when `strict`, and so are
  // tensors of another shape always; nothing is copied then.
  StateDictDifference load_state_dict(const StateDict& state, bool strict = true);

  HookHandle register_forward_pre_hook(ForwardPreHook hook) { return forward_pre_hooks_.add(std::move(hook)); }
  HookHandle register_forward_hook(ForwardHook hook) { return forward_hooks_.add(std::move(hook)); }
  HookHandle register_full_backward_hook(BackwardHook hook) { return backward_hooks_.add(std::move(hook)); }
  HookHandle register_full_backward_pre_hook(BackwardPreHook hook) { return backward_pre_hooks_.add(std::move(hook)); }

 protected:
  // Names must be new and free of dots. An undefined tensor takes the name only (no bias, no running mean).
  Tensor register_parameter(const std::string& name, Tensor value, bool requires_grad = true);
  Tensor register_buffer(const std::string& name, Tensor value, bool is_persistent = true);
  template <class M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    add_module(name, module);
    return module;
  }

 private:
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool is_persistent;
  };
  void check_name(const std::string& name) const;
  void add_module(const std::string& name, std::shared_ptr<Module> module);
  void collect_state(const std::string& prefix, StateDict& state) const;
  template <class Visit>
  void visit_modules(const std::string& prefix, std::vector<const Module*>& seen, const Visit& visit) const;
  Tensors run_with_hooks(Tensors inputs);

  const std::string kind_;
  bool is_training_ = true;
  std::vector<NamedTensor> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  HookList<ForwardPreHook> forward_pre_hooks_;
  HookList<ForwardHook> forward_hooks_;
  HookList<BackwardHook> backward_hooks_;
  HookList<BackwardPreHook> backward_pre_hooks_;
};

// A module of one tensor that gives one.
class Layer : public Module {
 public:
  using Module::Module;
  virtual Tensor forward(const Tensor& input) = 0;
  Tensors forward(const Tensors& inputs) final {
    check(inputs.size() == 1, kind(), ": expected one input but got ", inputs.size());
    return {forward(inputs.front())};
  }
};

// Hooks of every module; they run before the module's own. Register them while no other thread calls modules.
HookHandle register_global_forward_pre_hook(ForwardPreHook hook);
HookHandle register_global_forward_hook(ForwardHook hook);
HookHandle register_global_full_backward_hook(BackwardHook hook);

}  // namespace tensord::nn
