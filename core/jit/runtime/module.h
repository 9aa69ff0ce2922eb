#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/jit/importers/format.h"
#include "core/jit/ir/function.h"
#include "core/jit/passes/pass.h"
#include "core/jit/runtime/frame.h"
#include "core/jit/runtime/module_hooks.h"
#include "core/jit/runtime/run_options.h"
#include "core/jit/runtime/specializations.h"
#include "core/ops/value.h"

namespace tensord::jit {

struct LoadOptions {
  PassOptions passes;    // which passes run, and what they dump
  bool optimize = true;  // false: interpret the graphs as the frontend made them
  ops::Precision precision = ops::Precision::kF32;
  bool allows_tf32 = false;  // of float32 products and convolutions on CUDA, besides what the calling thread allows
  PlanOptions plan;
  // The module can be trained: its tensors are private writable memory with the archive's requires_grad, neither they
  // nor `training` are constants (no freezing, packing or plans), and methods run in the caller's grad mode. Otherwise
  // methods run in inference mode.
  bool for_training = false;
  // Device of the model's tensors, on which methods expect their inputs, wherever the file was written (placement.h).
  Device device = {};
  // A .safetensors file whose tensors override parameters and buffers of the same names. Empty: weights.safetensors
  // beside the model, if it exists.
  std::string weights;
  // Reads each file of the model from a private copy (see copy_privately), so that writing to the file does not affect
  // the module.
  bool copies_files = false;
  // Composites that replace the registered operators of the same names, with the same arguments and results.
  std::vector<std::shared_ptr<const ops::Op>> operator_overrides;
};

// One method of a loaded module, optimized and ready to run. Immutable, shared by workers.
class Method {
 public:
  const std::string& name() const;
  // Without self.
  const ops::Schema& schema() const;
  // Whether a run may modify the module's attributes; such calls must not run concurrently.
  bool changes_state() const;
  const Graph& graph() const;  // after the passes

  // Compiles the program for these arguments and the calling thread's thread budget. The observer sees the passes. For
  // reports only; `run` caches its own programs. Null if no part of it could be planned. Throws Error.
  std::shared_ptr<const Program> specialize(std::span<const ops::Value> arguments, const PassOptions& passes) const;
  PlanStats plan_stats() const;

  // Runs with positional arguments; missing ones take their defaults. Throws Error; if the script raised, its code is
  // kScriptRaised and it has the script's message. Restores the caller's grad mode. `options.poison` is ignored in
  // favor of the module's.
  ops::Value run(Frame& frame, std::span<const ops::Value> arguments, RunOptions options = {}) const;

 private:
  friend class Module;
  struct Impl;
  explicit Method(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;

 public:
  ~Method();
};

// A loaded model of any format (see importers/format.h): its objects and methods. Methods are compiled on first use
// under a lock and then looked up without one. Thread-safe.
class Module {
 public:
  // Throws Error: kNotFound (the file does not exist), kDataLoss (truncated or modified), kUnimplemented (names the
  // operator or class), kInvalidArgument (script errors, with file, line, caret).
  static std::shared_ptr<Module> load(const std::string& path, LoadOptions options = {});
  // Compiles TorchScript source as in model.py: a class derived from Module, with its declared tensors given by dotted
  // names, which it owns from then on; or functions, which become the methods.
  static std::shared_ptr<Module> compile(const std::string& source,
                                         const std::vector<std::pair<std::string, Tensor>>& tensors = {},
                                         LoadOptions options = {});
  ~Module();

  const Method& method(const std::string& name) const;  // throws Error{kNotFound}
  bool has_method(const std::string& name) const;
  std::vector<std::string> method_names() const;
  const ops::ObjectPtr& object() const;
  const FunctionLibrary& functions() const;
  // Triton's name of the model's format.
  const std::string& platform() const;
  // The file's description of a method's tensors; null if it has none, as in TorchScript.
  const MethodSignature* signature(const std::string& method) const;

  // (dotted name, tensor) of every tensor attribute, in archive order.
  std::vector<std::pair<std::string, Tensor>> named_tensors() const;
  // Parameters and buffers with nn.Module's names and order: of the module itself, then of its submodules. A tensor
  // with several names is listed once, under the first. Includes parameters that do not require gradients (frozen
  // ones).
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  // (dotted name, object) of the module itself, named "", and of its submodules, in nn.Module's order.
  std::vector<std::pair<std::string, ops::ObjectPtr>> named_modules() const;

  // Registers hooks on the forward of a submodule by its dotted name, "" for this module, with PyTorch's order:
  // pre-hooks, forward, hooks. While a hook exists, methods run as written, without passes and plans. The handle
  // removes it. Backward hooks need a model loaded for training. Throw Error{kNotFound} for an unknown module, and
  // kFailedPrecondition. Thread-safe; a run in progress may miss a new hook.
  autograd::HookHandle register_forward_pre_hook(const std::string& module, ForwardPreHook hook, bool prepend = false);
  autograd::HookHandle register_forward_hook(const std::string& module, ForwardHook hook, bool prepend = false);
  autograd::HookHandle register_full_backward_hook(const std::string& module, FullBackwardHook hook,
                                                   bool prepend = false);
  autograd::HookHandle register_full_backward_pre_hook(const std::string& module, FullBackwardPreHook hook,
                                                       bool prepend = false);

  // Computes what a submodule's forward saves again in each backward pass, instead of keeping it: the same numbers with
  // less memory. REQUIRES: this module outlives the passes. Errors as above.
  autograd::HookHandle checkpoint_activations(const std::string& module);

  // Whether any submodule has hooks.
  bool has_hooks() const;
  bool is_for_training() const;
  // The attribute `training` of the module itself; false if it has none.
  bool is_training() const;
  // As nn.Module.train(value): sets `training` of the module and of all submodules. Throws Error{kFailedPrecondition}
  // unless loaded for training. REQUIRES: no method is running.
  void set_training(bool value);
  // Writes a file in the module's original format, which PyTorch and `load` read: its code, and its attributes and
  // tensors with their current values. A module from source is written as an archive, or, if the path ends with .py, as
  // source with weights.safetensors beside it. Writes atomically (see AtomicFile, also for errors); memory use does not
  // grow with the weights. REQUIRES: no method is running.
  void save(const std::string& path) const;
  // Throws Error{kUnimplemented} with the reason if models of this kind cannot be saved.
  void check_can_save() const;
  // Bytes of parameters and buffers, each storage counted once.
  size_t size_bytes() const;
  // Releases the memory of weights that were read from the file and never written, for when plans have packed copies. A
  // run that needs them reads them from the file again. Returns the number of bytes released. REQUIRES: no method that
  // changes state is running.
  size_t release_file_memory() const;
  // Throws Error{kDataLoss} if the file was modified or truncated under the mapped weights: earlier runs may have read
  // other data than was loaded. Costs one system call.
  void check_file() const;

 private:
  struct Impl;
  explicit Module(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

inline std::unique_ptr<Frame> make_frame() { return std::make_unique<Frame>(); }

}  // namespace tensord::jit
