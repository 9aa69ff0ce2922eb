#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/jit/formats/format.h"
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
  bool optimize = true;  // false: interpret the graphs as the front end made them
  ops::Precision precision = ops::Precision::kF32;
  PlanOptions plan;
  // The module can be trained: its tensors are private writable memory with the archive's
  // requires_grad, neither they nor `training` are taken as constant (no freezing, packing or plans),
  // and methods run in the caller's grad mode. Without it they run in inference mode.
  bool for_training = false;
  // Where the model's tensors are put, and its methods' inputs are expected. Of an archive of TorchScript; other
  // formats are the host's.
  Device device = {};
  // A .safetensors file whose tensors take the place of parameters and buffers of these names. Empty: the file
  // weights.safetensors beside the model, where there is one.
  std::string weights;
  // Each file that the model consists of is read from a private copy (see copy_privately), so that writing to it does
  // not reach the module.
  bool copies_files = false;
  // Composites that run wherever the code has the operator of the registry with their name; same arguments and results.
  std::vector<std::shared_ptr<const ops::Op>> operator_overrides;
};

// One method of a loaded module, optimized and ready to run. Immutable, shared by workers.
class Method {
 public:
  const std::string& name() const;
  // Arguments without self.
  const ops::Schema& schema() const;
  // Whether a run may change the module's attributes; such calls must not run side by side.
  bool changes_state() const;
  const Graph& graph() const;  // after the passes

  // The program that runs for these arguments with the calling thread's budget, made anew. The
  // observer sees the passes on the way. For reports; `run` keeps programs of its own.
  // Null when nothing in it could be planned. Throws Error.
  std::shared_ptr<const Program> specialize(std::span<const ops::Value> arguments, const PassOptions& passes) const;
  PlanStats plan_stats() const;

  // Runs with arguments by position; missing ones take their defaults. Throws Error, with
  // code kScriptRaised and the script's message when the script raised. The caller's grad mode is afterwards what it
  // was before. `options.poison` is the module's.
  ops::Value run(Frame& frame, std::span<const ops::Value> arguments, RunOptions options = {}) const;

 private:
  friend class Module;
  struct Impl;
  explicit Method(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;

 public:
  ~Method();
};

// A loaded model of any format (see formats/format.h): its objects and its methods. Methods are
// compiled on first use under a lock, then looked up without one. Thread-safe.
class Module {
 public:
  // Throws Error: kNotFound (no such file), kDataLoss (truncated or altered), kUnimplemented
  // (names the operator or class), kInvalidArgument (script errors, with file, line, caret).
  static std::shared_ptr<Module> load(const std::string& path, LoadOptions options = {});
  // The same of TorchScript source, as model.py has it: one class that derives from Module, with the tensors that it
  // declares by their dotted names, which it has from then on; or functions, which become the methods.
  static std::shared_ptr<Module> compile(const std::string& source,
                                         const std::vector<std::pair<std::string, Tensor>>& tensors = {},
                                         LoadOptions options = {});
  ~Module();

  const Method& method(const std::string& name) const;  // throws Error{kNotFound}
  bool has_method(const std::string& name) const;
  std::vector<std::string> method_names() const;
  const ops::ObjectPtr& object() const;
  const FunctionLibrary& functions() const;
  // What Triton calls the model's format.
  const std::string& platform() const;
  // What the file says of a method's tensors; null where it says nothing, as TorchScript does.
  const MethodSignature* signature(const std::string& method) const;

  // (dotted name, tensor) of every tensor attribute, in archive order.
  std::vector<std::pair<std::string, Tensor>> named_tensors() const;
  // Parameters and buffers as nn.Module names and orders them: of the module itself, then of its
  // submodules; a tensor with several names comes once, with its first. Parameters that require no
  // gradient (frozen ones) are among them.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  // (dotted name, object) of the module itself, named "", and of those inside of it, as nn.Module orders them.
  std::vector<std::pair<std::string, ops::ObjectPtr>> named_modules() const;

  // Hooks on calls of the forward of a module by its dotted name, "" for this one, with PyTorch's order: pre-hooks,
  // forward, hooks. While there is one, methods run as they are written, without passes and plans; afterwards as
  // before. The handle takes it away. Backward hooks want a model loaded for training. Throw Error{kNotFound} where
  // there is no such module, kFailedPrecondition. Thread-safe; a run that is under way may miss it.
  autograd::HookHandle register_forward_pre_hook(const std::string& module, ForwardPreHook hook, bool prepend = false);
  autograd::HookHandle register_forward_hook(const std::string& module, ForwardHook hook, bool prepend = false);
  autograd::HookHandle register_full_backward_hook(const std::string& module, FullBackwardHook hook,
                                                   bool prepend = false);
  autograd::HookHandle register_full_backward_pre_hook(const std::string& module, FullBackwardPreHook hook,
                                                       bool prepend = false);

  // Whether some module in it has hooks now.
  bool has_hooks() const;
  bool is_for_training() const;
  // Attribute `training` of the module itself; false when it has none.
  bool is_training() const;
  // As nn.Module.train(value): sets `training` of the module and of all submodules. Throws
  // Error{kFailedPrecondition} unless loaded for training. REQUIRES: no method runs meanwhile.
  void set_training(bool value);
  // Writes a file of the format that the module came from, which PyTorch and `load` read: its code, and its
  // attributes and tensors as they are now. One of source is written as an archive, or, where the path ends with .py,
  // as source with weights.safetensors beside it. The file appears whole or not at all (see AtomicFile, also for
  // errors); memory use does not grow with the weights. REQUIRES: no method runs meanwhile.
  void save(const std::string& path) const;
  // Throws Error{kUnimplemented} with the reason where models of this kind cannot be saved.
  void check_can_save() const;
  // Bytes of parameters and buffers, storages counted once.
  size_t size_bytes() const;
  // Gives back the memory of weights that were read from the file and never written: for when the
  // plans have packed copies. A run that needs them still gets them from the file again. Returns
  // the bytes given back. REQUIRES: no method that changes state runs meanwhile.
  size_t release_file_memory() const;
  // Throws Error{kDataLoss} where the file was written to, or cut off, under the weights that are mapped: what ran
  // before this call may have read something else than was loaded. Costs a system call.
  void check_file() const;

 private:
  struct Impl;
  explicit Module(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

inline std::unique_ptr<Frame> make_frame() { return std::make_unique<Frame>(); }

}  // namespace tensord::jit
