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

// Differences found by load_state_dict: names that only the module has (missing), or only the state (unexpected).
struct StateDictDifference {
  std::vector<std::string> missing, unexpected;
};

class Module;

// May replace the inputs, or the result, by returning new ones. Both are lists; most modules have one tensor each.
using ForwardPreHook = std::function<std::optional<Tensors>(Module&, const Tensors& inputs)>;
using ForwardHook = std::function<std::optional<Tensors>(Module&, const Tensors& inputs, const Tensors& outputs)>;
// Called in the backward pass with the gradients of the inputs and of the results, undefined if there are none. It may
// replace those of the inputs. The pre-hook is called before the module's own backward and may replace those of the
// results. The module must live until the backward pass has ended.
using BackwardHook =
    std::function<std::optional<Tensors>(Module&, const Tensors& grad_inputs, const Tensors& grad_outputs)>;
using BackwardPreHook = std::function<std::optional<Tensors>(Module&, const Tensors& grad_outputs)>;

// Hooks in the order of registration; a handle can remove its hook.
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

// A layer or model: named parameters, buffers and submodules, with PyTorch's semantics. A derived class registers them
// in its constructor, keeps the returned handles, and implements forward(). Modules are held by shared_ptr; one may be
// in several places. Thread-safety: as for a container; forward() of one module may run on several threads at once if
// the derived class allows it and no hook is registered.
class Module {
 public:
  // `kind` is the class name, used in messages: "Linear".
  explicit Module(std::string kind) : kind_(std::move(kind)) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // The computation without hooks.
  virtual Tensors forward(const Tensors& inputs) = 0;
  // Runs forward pre-hooks, forward, forward hooks; global hooks come first.
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
  // Sets the mode of this module and its submodules.
  virtual void train(bool is_training = true);
  void eval() { train(false); }
  void requires_grad_(bool value = true);
  // Sets the gradients to undefined, or to zeros.
  void zero_grad(bool set_to_none = true);
  // Converts floating-point parameters and buffers. Handles still refer to the same tensors.
  void to(DType dtype);
  // Moves all parameters and buffers. Handles still refer to the same tensors; gradients are dropped.
  void to(Device device);
  // Calls `function` for the submodules, innermost first, then for this module.
  void apply(const std::function<void(Module&)>& function);

  // This module first, then its submodules, depth first in the order of registration. Tensors and modules in several
  // places are listed once, at the first place.
  std::vector<NamedTensor> named_parameters(bool recurse = true) const;
  std::vector<NamedTensor> named_buffers(bool recurse = true) const;
  std::vector<std::pair<std::string, Module*>> named_modules() const;
  Tensors parameters(bool recurse = true) const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const { return children_; }
  // "layer1.0", or "" for this module. Throws Error{kNotFound}.
  Module& submodule(std::string_view name);

  // For each module its parameters, then its persistent buffers, then its submodules. Tensors in several places are
  // listed under each of their names.
  StateDict state_dict() const;
  // Copies into the module's own tensors. Throws Error if shapes differ, or if names differ and `strict` is set;
  // nothing is copied then.
  StateDictDifference load_state_dict(const StateDict& state, bool strict = true);

  HookHandle register_forward_pre_hook(ForwardPreHook hook) { return forward_pre_hooks_.add(std::move(hook)); }
  HookHandle register_forward_hook(ForwardHook hook) { return forward_hooks_.add(std::move(hook)); }
  HookHandle register_full_backward_hook(BackwardHook hook) { return backward_hooks_.add(std::move(hook)); }
  HookHandle register_full_backward_pre_hook(BackwardPreHook hook) { return backward_pre_hooks_.add(std::move(hook)); }

 protected:
  // Names must be new and without dots. An undefined tensor only reserves the name (no bias, no running mean).
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

// A module with one input tensor and one output tensor.
class Layer : public Module {
 public:
  using Module::Module;
  virtual Tensor forward(const Tensor& input) = 0;
  Tensors forward(const Tensors& inputs) final {
    check(inputs.size() == 1, kind(), ": expected one input but got ", inputs.size());
    return {forward(inputs.front())};
  }
};

// Hooks of all modules; they run before the module's own. Register them while no other thread calls modules.
HookHandle register_global_forward_pre_hook(ForwardPreHook hook);
HookHandle register_global_forward_hook(ForwardHook hook);
HookHandle register_global_full_backward_hook(BackwardHook hook);

}  // namespace tensord::nn
