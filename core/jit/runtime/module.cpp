#include "core/jit/runtime/module.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "core/autograd/variable.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/nearest.h"
#include "core/base/parallel.h"
#include "core/jit/archive/model_archive.h"
#include "core/jit/archive/model_writer.h"
#include "core/jit/frontend/compilation_unit.h"
#include "core/jit/importers/foreign_weights.h"
#include "core/jit/importers/format.h"
#include "core/jit/importers/source/source_format.h"
#include "core/jit/ir/operator_search.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/freeze_analysis.h"
#include "core/jit/passes/pipeline.h"
#include "core/jit/runtime/arguments.h"
#include "core/jit/runtime/interpreter.h"
#include "core/jit/runtime/module_impl.h"
#include "core/jit/runtime/module_tensors.h"
#include "core/jit/runtime/operator_override.h"
#include "core/jit/runtime/program_library.h"
#include "core/jit/runtime/save_archive.h"
#include "core/tensor/allocator.h"
#include "core/tensor/device_runtime.h"

namespace tensord::jit {

using ops::Value;
namespace {

constexpr const char* kTraining = "training";

SourceOrigins origins_of(const ModelArchive& archive) {
  SourceOrigins out;
  for (auto& [file, lines] : archive.author_lines()) {
    std::vector<SourceOrigin>& origins = out[file];
    for (const AuthorLine& line : lines) origins.push_back({line.offset, line.line, line.file});
  }
  return out;
}

void check_device(const LoadOptions& options) {
  if (options.device.is_host()) return;
  device_runtime(options.device);
  if (options.precision != ops::Precision::kF32) {
    fail(ErrorCode::kUnimplemented, "precision: weights are packed as bf16 or int8 for the CPU only, not for ",
         to_string(options.device));
  }
}

}  // namespace

std::unique_ptr<Graph> Module::Impl::prepare(const Graph& source, ops::ObjectPtr self) {
  const GradModeGuard guard(own_mode(options));
  auto graph = source.clone();
  if (placement) placement->place_graph(*graph);
  const bool is_optimized = options.optimize && !reshapes;
  if (is_optimized) {
    PassContext context;
    context.is_for_training = options.for_training;
    context.functions = functions.get();
    context.precision = options.precision;
    context.packs = packs;
    context.self = std::move(self);
    context.changing_attributes = context.self ? &changing_attributes : nullptr;
    context.failures = &pass_failures;
    run_pipeline(graph, context, options.passes,
                 context.self && !options.for_training ? inference_pipeline() : simplification_pipeline());
    check_keeps_shapes(*graph, *functions);
  }
  for (const auto& stand_in : options.operator_overrides) override_operator(graph->block(), *stand_in);
  // Runs in other streams read what was computed or copied here.
  if (placement) synchronize(options.device);
  return graph;
}

void Module::Impl::find_changing_attributes() {
  if (is_analyzed) return;
  std::vector<const Graph*> graphs;
  for (const auto& [name, slot] : slots) {
    try {
      if (const Function* function = functions->find_method(object->type->name(), name))
        graphs.push_back(function->graph.get());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded) throw;
      // A method that does not compile cannot run either; requesting it reports the reason.
    }
  }
  const std::set<std::string> trained = options.for_training ? trained_attributes(object) : std::set<std::string>();
  OperatorSearch search(*functions, changes_shape);
  for (const Graph* graph : graphs) reshapes = reshapes || search.find(graph->block());
  PassContext context;
  context.functions = functions.get();
  context.self = object;
  context.failures = &pass_failures;
  changing_attributes = jit::find_changing_attributes(context, graphs, trained, {.alter = options.passes.alter});
  for (const std::string& path : changing_attributes) {
    changing_names.insert(path.substr(path.rfind('.') + 1));
  }
  is_analyzed = true;
}

// Once nothing is called by name, the sources of compiled methods only use memory. Other methods are parsed again if
// they are requested.
void Module::Impl::forget_sources(const Method::Impl& method) {
  if (!scripts) return;
  keeps_functions = keeps_functions || has_calls(*method.graph->block()) || !library->is_empty();
  if (!keeps_functions) scripts->forget_functions();
}

// Calls that were not inlined may have any effect.
bool Module::Impl::touches_changing_attributes(const Block* block) const {
  bool found = false;
  for_each_node(*block, [&](const Node& node) {
    const bool is_attribute = node.kind() == NodeKind::kGetAttr || node.kind() == NodeKind::kSetAttr;
    found = found || (is_attribute ? changing_names.contains(node.name()) : is_call(node.kind()));
  });
  return found;
}

std::unique_ptr<const Method> Module::Impl::compile(const std::string& name) {
  const MemoryOwnerScope charge(owner);
  const GradModeGuard guard(own_mode(options));
  find_changing_attributes();
  const Function* function = functions->find_method(object->type->name(), name);
  if (!function) fail(ErrorCode::kNotFound, object->type->name(), " has no method ", name);
  check(!function->schema.arguments.empty() && !function->graph->inputs().empty(), function->name, ": has no self");
  auto method = std::make_unique<Method::Impl>();
  method->name = name;
  method->schema = function->schema;
  method->schema.name = name;
  method->schema.arguments.erase(method->schema.arguments.begin());
  method->graph = prepare(*function->graph, object);
  if (placement && !options.for_training) check_kernels(*method->graph, options.device);
  // An attribute or a constant may be resized, which two runs must not do concurrently.
  method->changes_state = options.for_training || reshapes ||
                          (!changing_names.empty() && touches_changing_attributes(method->graph->block()));
  method->program = Program::compile(*method->graph, function->name);
  method->self = object;
  method->library = library.get();
  method->functions = functions.get();
  method->options = options;
  method->packs = packs.get();
  method->pass_failures = &pass_failures;
  method->hooks = hooks.get();
  if (options.optimize && options.plan.is_enabled && !options.for_training && !reshapes) {
    const Method::Impl& made = *method;
    const OwnerId charged = owner;
    method->specializations = std::make_unique<
        Specializations>(*method->program, options.plan.cache_size, [&made, charged](std::span<const Value> bound) {
      const MemoryOwnerScope charge(charged);
      // The observer sees the passes at load only; specialization for requests of several workers bypasses it.
      PassOptions passes{made.options.passes.disabled, made.options.passes.limits, nullptr, made.options.passes.alter};
      return made.specialize(bound, passes);
    });
  }
  forget_sources(*method);
  return std::unique_ptr<const Method>(new Method(std::move(method)));
}

bool Module::Impl::set_state(const ops::ObjectPtr& target, const Value& state) {
  if (!scripts->find_method(target->type->name(), "__setstate__")) return false;
  const CallTarget& found = library->find_method(*target->type, "__setstate__");
  Frame frame;
  std::vector<Value> arguments{Value(target), state};
  static const std::function<bool()> kIsCancelled = is_work_cancelled;
  Interpreter(frame, library.get(), {.is_cancelled = &kIsCancelled}).run(*found.program, arguments);
  return true;
}

std::optional<Value> Module::Impl::get_state(const ops::ObjectPtr& target) const {
  if (!scripts->find_method(target->type->name(), "__getstate__")) return std::nullopt;
  const CallTarget& found = library->find_method(*target->type, "__getstate__");
  Frame frame;
  std::vector<Value> arguments{Value(target)};
  return Interpreter(frame, library.get()).run(*found.program, arguments);
}

void Module::Impl::load_objects(const ModelArchive& archive) {
  ObjectHooks hooks;
  hooks.find_type = [this](const std::string& name) { return scripts->find_type(name); };
  hooks.set_state = [this](const ops::ObjectPtr& target, const Value& state) { return set_state(target, state); };
  hooks.enum_member = [this](const ops::TypePtr& type, const Value& value) {
    for (const Value& member : scripts->enum_members(type->name())) {
      if (member.to_enum()->value.equals(value)) return member;
    }
    fail(ErrorCode::kDataLoss, type->name(), ": no member has the value in the archive");
  };
  hooks.copies_tensors = options.for_training;
  hooks.device = options.device;
  scripts->set_constants(archive.constants(hooks));
  hooks.requires_grad = [this](const Tensor& tensor) { with_gradient.push_back(tensor); };
  const Value root = archive.object(hooks);
  check(root.is_object(), "data.pkl: expected a module but got ", root.tag_name());
  object = root.to_object();
}

// A tensor that only parameters and buffers refer to is replaced by the new one, mapped from its file. If lists, views
// or constants in the code refer to it too, the values are copied into it.
void Module::Impl::replace_weights() {
  struct Holders {
    std::vector<Value*> slots;
    std::vector<Tensor*> with_gradient;
  };
  std::map<const TensorImpl*, Holders> holders;
  std::vector<std::pair<std::string, Tensor>> members;
  for (const auto& [name, slot] : collect_member_slots(object)) {
    members.emplace_back(name, slot->to_tensor());
    holders[slot->to_tensor().impl()].slots.push_back(slot);
  }
  const auto replaced = new_weights->match(members);
  members.clear();  // must not count as owners
  for (Tensor& tensor : with_gradient) {
    const auto found = holders.find(tensor.impl());
    if (found != holders.end()) found->second.with_gradient.push_back(&tensor);
  }
  for (const auto& [own, given] : replaced) {
    const Holders& known = holders.at(own);
    const size_t count = known.slots.size() + known.with_gradient.size();
    if (options.for_training || !options.device.is_host() || own->storage->use_count() > 1 ||
        own->use_count() > count) {
      known.slots.front()->to_tensor().copy_from(given);
      continue;
    }
    for (Tensor* tensor : known.with_gradient) *tensor = given;
    for (Value* slot : known.slots) *slot = Value(given);
  }
}

void Module::Impl::place() {
  if (options.device.is_host()) return;
  placement.emplace(options.device);
  placement->place_objects(object);
  placement->place_tensors(with_gradient);
  synchronize(options.device);
}

void Module::Impl::add_slots() {
  for (const Tensor& tensor : with_gradient) {
    if (options.for_training) autograd::set_requires_grad(tensor);
  }
  if (!options.for_training && !with_gradient.empty())
    options.operator_overrides.push_back(requires_grad_of(with_gradient));
  hooks = std::make_unique<ModuleHooks>(*functions, [this](const Function& function) {
    auto graph = function.graph->clone();
    if (placement) placement->place_graph(*graph);
    for (const auto& stand_in : options.operator_overrides) override_operator(graph->block(), *stand_in);
    return graph;
  });
  for (const std::string& name : functions->method_names(object->type->name())) {
    // These methods run only when an object is loaded or saved.
    if (name != "__setstate__" && name != "__getstate__") slots.try_emplace(name);
  }
}

void Module::Impl::load_scripts(const std::string& path) {
  const ModelArchive opened = ModelArchive::open(path, {.copies_file = options.copies_files});
  auto unit = std::make_unique<CompilationUnit>(opened.sources());
  unit->set_version(opened.version());
  unit->set_origins(origins_of(opened));
  scripts = unit.get();
  functions = std::move(unit);
  library = std::make_unique<ProgramLibrary>(
      *functions, [this](const Function& function) { return prepare(*function.graph, nullptr); });
  load_objects(opened);
  archive = opened.file();
}

void Module::Impl::take(LoadedModel model) {
  functions = std::move(model.functions);
  library = std::make_unique<ProgramLibrary>(
      *functions, [this](const Function& function) { return prepare(*function.graph, nullptr); });
  object = std::move(model.object);
  file = std::move(model.file);
  write = std::move(model.save);
  why_not_saved = std::move(model.why_not_saved);
  signatures = std::move(model.signatures);
  with_gradient = std::move(model.with_gradient);
}

Module::Module(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;

std::shared_ptr<Module> Module::load(const std::string& path, LoadOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  check_device(impl->options);
  const GradModeGuard guard(own_mode(impl->options));
  const std::string weights = impl->options.weights.empty() ? weights_beside(path) : impl->options.weights;
  if (!weights.empty()) impl->new_weights.emplace(weights, impl->options.for_training, impl->options.copies_files);
  if (const std::string what = describe_placeholder(path); !what.empty()) {
    fail(ErrorCode::kUnimplemented, path, ": ", what);
  }
  if (const ModelFormat* format = find_format(path)) {
    impl->platform = format->platform;
    impl->is_source = format == &kSourceFormat;
    const NewWeights* weights = impl->new_weights ? &*impl->new_weights : nullptr;
    impl->take(format->read(path, {.copies_tensors = impl->options.for_training,
                                   .copies_files = impl->options.copies_files,
                                   .weights = weights}));
  } else if (const std::string what = describe_foreign_weights(path); !what.empty()) {
    fail(ErrorCode::kUnimplemented, path, ": ", what);
  } else if (const std::string file = find_model_file(path); !file.empty()) {
    fail(ErrorCode::kInvalidArgument, path, ": is a folder; its model is the file ", file);
  } else {
    impl->load_scripts(path);
    if (impl->new_weights) impl->replace_weights();
  }
  impl->place();
  impl->add_slots();
  return std::shared_ptr<Module>(new Module(std::move(impl)));
}

std::shared_ptr<Module> Module::compile(const std::string& source,
                                        const std::vector<std::pair<std::string, Tensor>>& tensors,
                                        LoadOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  check_device(impl->options);
  const GradModeGuard guard(own_mode(impl->options));
  impl->is_source = true;
  impl->take(compile_source("/source", source, tensors));
  impl->place();
  impl->add_slots();
  return std::shared_ptr<Module>(new Module(std::move(impl)));
}

const Method& Module::method(const std::string& name) const {
  const auto found = impl_->slots.find(name);
  if (found == impl_->slots.end()) {
    fail(ErrorCode::kNotFound, impl_->object->type->name(), " has no method ", name, right_names(name, method_names()));
  }
  Impl::Slot& slot = found->second;
  if (const Method* ready = slot.ready.load(std::memory_order_acquire)) return *ready;
  MutexLock lock(impl_->compile_mutex);
  if (!slot.method) slot.method = impl_->compile(name);
  slot.ready.store(slot.method.get(), std::memory_order_release);
  return *slot.method;
}

bool Module::has_method(const std::string& name) const { return impl_->slots.contains(name); }

std::vector<std::string> Module::method_names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : impl_->slots) {
    if (!name.starts_with("__")) names.push_back(name);
  }
  return names;
}

const ops::ObjectPtr& Module::object() const { return impl_->object; }
const FunctionLibrary& Module::functions() const { return *impl_->functions; }
const std::string& Module::platform() const { return impl_->platform; }

const MethodSignature* Module::signature(const std::string& method) const {
  const auto found = impl_->signatures.find(method);
  return found == impl_->signatures.end() ? nullptr : &found->second;
}

std::vector<std::pair<std::string, Tensor>> Module::named_tensors() const { return collect_tensors(impl_->object); }
size_t Module::size_bytes() const { return storage_bytes(named_tensors()); }

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  return collect_members(impl_->object, &ops::ClassType::parameter_names);
}
std::vector<std::pair<std::string, Tensor>> Module::named_buffers() const {
  return collect_members(impl_->object, &ops::ClassType::buffer_names);
}

std::vector<std::pair<std::string, ops::ObjectPtr>> Module::named_modules() const {
  return collect_named_modules(impl_->object);
}

bool Module::is_for_training() const { return impl_->options.for_training; }

bool Module::is_training() const {
  const int slot = impl_->object->type->find_attribute(kTraining);
  if (slot < 0) return false;
  const Value& value = impl_->object->slots[static_cast<size_t>(slot)];
  return value.is_bool() && value.to_bool();
}

void Module::set_training(bool value) {
  if (!impl_->options.for_training) {
    fail(ErrorCode::kFailedPrecondition, impl_->object->type->name(), " was not loaded for training");
  }
  for (const ops::ObjectPtr& module : collect_modules(impl_->object)) {
    const int slot = module->type->find_attribute(kTraining);
    if (slot >= 0) module->slots[static_cast<size_t>(slot)] = Value(value);
  }
}

void Module::save(const std::string& path) const {
  const GradModeGuard guard(own_mode(impl_->options));
  check_can_save();
  std::unordered_set<const TensorImpl*> with_gradient;
  for (const Tensor& tensor : impl_->with_gradient) with_gradient.insert(tensor.impl());
  if (impl_->write && impl_->placement) impl_->placement->bring_back();
  const AtHome home(impl_->object, impl_->options.device);
  const auto requires_grad = [&](const Tensor& given) {
    const Tensor& tensor = home.original(given);
    return impl_->options.for_training ? autograd::requires_grad(tensor) : with_gradient.contains(tensor.impl());
  };
  if (impl_->archive) {
    ModelWriterHooks hooks;
    hooks.get_state = [this](const ops::ObjectPtr& object) { return impl_->get_state(object); };
    hooks.requires_grad = requires_grad;
    write_model_archive(path, *impl_->archive, impl_->object, hooks);
  } else if (impl_->is_source && !path.ends_with(".py")) {
    save_archive(path, *impl_->functions, impl_->object, requires_grad);
  } else {
    impl_->write(path);
  }
}

void Module::check_can_save() const {
  if (impl_->archive || impl_->write) return;
  const std::string& reason = impl_->why_not_saved;
  fail(ErrorCode::kUnimplemented, reason.empty() ? "models of this format are not written" : reason);
}

void Module::check_file() const {
  if (impl_->new_weights) impl_->new_weights->check_unchanged();
  if (impl_->archive) impl_->archive->check_unchanged();
  if (impl_->file) impl_->file->check_unchanged();
}

size_t Module::release_file_memory() const {
  return (impl_->new_weights ? impl_->new_weights->release_pages() : 0) +
         (impl_->archive ? impl_->archive->release_pages() : 0) + (impl_->file ? impl_->file->release_pages() : 0);
}

}  // namespace tensord::jit
