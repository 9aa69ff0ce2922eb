#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/jit/archive/model_archive.h"
#include "core/jit/frontend/compilation_unit.h"
#include "core/jit/importers/format.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/module_hooks.h"
#include "core/jit/runtime/placement.h"
#include "core/jit/runtime/program_library.h"
#include "core/tensor/allocator.h"

// Shared by module.cpp and module_calls.cpp.
namespace tensord::jit {

inline constexpr const char* kTorchScript = "pytorch_libtorch";  // archives and source

// Grad mode for the module's own computations, which are never recorded. Tensors used in training must not be inference
// tensors.
inline GradMode own_mode(const LoadOptions& options) {
  return {.is_enabled = false, .is_inference = !options.for_training};
}

struct Method::Impl {
  std::string name;
  ops::Schema schema;  // without self
  bool changes_state = false;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Program> program;
  ops::ObjectPtr self;
  ProgramLibrary* library = nullptr;
  const FunctionLibrary* functions = nullptr;
  LoadOptions options;
  ops::PackStore* packs = nullptr;
  PassFailures* pass_failures = nullptr;
  ModuleHooks* hooks = nullptr;
  std::unique_ptr<Specializations> specializations;  // null if plans are off

  void bind(std::span<const ops::Value> arguments, std::vector<ops::Value>& bound) const {
    bound.clear();
    bound.reserve(schema.arguments.size() + 1);
    bound.emplace_back(self);
    bind_arguments(schema, arguments, bound);
  }
  ops::Value run_hooked(Frame& frame, const RunOptions& options) const;
  std::shared_ptr<const Program> specialize(std::span<const ops::Value> bound, const PassOptions& passes) const;
};

struct Module::Impl {
  // Entry of a method; created at load for every method, so that lookups need no lock.
  struct Slot {
    std::atomic<const Method*> ready{nullptr};
    std::unique_ptr<const Method> method;  // guarded by compile_mutex
  };

  std::unique_ptr<Graph> prepare(const Graph& graph, ops::ObjectPtr self);
  std::unique_ptr<const Method> compile(const std::string& name) TENSORD_REQUIRES(compile_mutex);
  void load_scripts(const std::string& path);
  void load_objects(const ModelArchive& archive);
  void replace_weights();
  void take(LoadedModel model);
  void add_slots();
  void place();
  autograd::HookHandle add_hook(const std::string& module, ModuleHooks::Hook hook, bool prepend);
  bool set_state(const ops::ObjectPtr& object, const ops::Value& state);
  std::optional<ops::Value> get_state(const ops::ObjectPtr& object) const;
  void find_changing_attributes() TENSORD_REQUIRES(compile_mutex);
  bool touches_changing_attributes(const Block* block) const;
  void forget_sources(const Method::Impl& method) TENSORD_REQUIRES(compile_mutex);

  LoadOptions options;
  std::shared_ptr<ops::PackStore> packs = std::make_shared<ops::PackStore>();
  PassFailures pass_failures;
  OwnerId owner = current_memory_owner();  // methods are compiled later, on any thread
  std::unique_ptr<const FunctionLibrary> functions;
  CompilationUnit* scripts = nullptr;  // `functions`, if they are compiled from source on demand
  std::unique_ptr<ProgramLibrary> library;
  std::unique_ptr<ModuleHooks> hooks;
  ops::ObjectPtr object;
  std::shared_ptr<const ZipArchive> archive;  // for TorchScript; for other formats:
  std::shared_ptr<const ModelFile> file;
  std::optional<NewWeights> new_weights;
  std::optional<Placement> placement;  // of a module on another device than the host
  std::function<void(const std::string& path)> write;
  std::string why_not_saved;
  std::string platform = kTorchScript;
  bool is_source = false;  // hand-written TorchScript: saved as an archive or as source
  std::map<std::string, MethodSignature> signatures;
  std::vector<Tensor> with_gradient;  // those that require gradients according to the archive
  std::map<std::string, Slot> slots;
  Mutex compile_mutex;
  bool is_analyzed TENSORD_GUARDED_BY(compile_mutex) = false;
  bool keeps_functions TENSORD_GUARDED_BY(compile_mutex) = false;  // a method calls functions by name
  // Written under compile_mutex before any method is ready, read-only from then on.
  bool reshapes = false;  // a method has an operator with changes_shape(), so all methods run as written
  std::set<std::string> changing_attributes;  // paths
  std::set<std::string> changing_names;       // last components of the paths
};

}  // namespace tensord::jit
