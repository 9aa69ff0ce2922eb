#include "server/executor/model/torchscript_model.h"

#include <absl/container/inlined_vector.h>
#include <malloc.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/jit/ir/alias.h"
#include "core/jit/ir/result_keys.h"
#include "core/jit/runtime/batch_safety.h"
#include "core/jit/runtime/module.h"
#include "core/ops/generator.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/lend.h"
#include "core/tensor/memory/accounts.h"
#include "server/executor/model/argument.h"
#include "server/executor/model/argument_copies.h"
#include "server/executor/model/configured_outputs.h"
#include "server/executor/model/gathered_argument.h"
#include "server/executor/model/instance_placement.h"
#include "server/executor/model/reshape.h"
#include "server/executor/model/result.h"
#include "server/executor/model/sequence_model.h"
#include "server/executor/model/training_mode.h"

namespace tensord::server {
namespace {

constexpr const char* kMethod = "forward";

std::string input_name(size_t index) { return concat("INPUT__", index); }

uint64_t random_seed() {
  uint64_t seed = 0;
  check(getrandom(&seed, sizeof(seed), 0) == sizeof(seed), "no random numbers from the system");
  return seed;
}

class TorchScriptModel final : public Model {
 public:
  TorchScriptModel(const std::string& file, const ModelConfig& config, const jit::LoadOptions& options)
      : generator_(config.seed ? *config.seed : random_seed()),
        device_(options.device),
        module_(load_module(file, options)),
        method_(module_->method(kMethod)),
        makes_plans_(options.plan.is_enabled) {
    signature_.platform = module_->platform();
    const std::string& configured = config.default_model_filename;
    signature_.file_name = configured.empty() ? std::filesystem::path(file).filename().string() : configured;
    signature_.max_batch_size = config.max_batch_size;
    signature_.device = device_;
    for (size_t i = 0; i < method_.schema().arguments.size(); ++i) add_argument(file, config, i);
    keep_names_apart(signature_.inputs);
    const bool has_batch = config.max_batch_size > 0;
    for (size_t i = 0; i < config.inputs.size(); ++i) configure_input(file, config.inputs[i], i, has_batch);
    const ModelConfig server = server_tensors(config);
    for (const ModelConfig::TensorConfig& input : server.inputs) configure_input(file, input, SIZE_MAX, has_batch);
    keep_names_apart(signature_.inputs);
    for (const TensorSpec& spec : signature_.inputs) {
      check(spec.is_optional || config.inputs.empty() || configured_.contains(spec.name), file,
            ": config.pbtxt has no input for argument '", spec.name, "' of ", kMethod);
    }
    find_written_arguments();
    if (!module_->signature(kMethod)) describe_from_graph();
    signature_.keeps_state = method_.changes_state();
    signature_.mixing_operator = jit::find_mixing_operator(*module_, method_);
    check_mixing(file, config);
    signature_.has_bounded_work = has_tensor_arguments_only() && is_straight(*method_.graph().block());
    responds_with_items_ = config.is_decoupled && !config.sequence_batching;
    add_outputs(file, config);
    const std::string training = training_mode_warning(file, *module_, method_);
    if (!training.empty()) warnings_.push_back(training);
  }

  const Signature& signature() const override { return signature_; }
  std::vector<std::string> warnings() const override { return warnings_; }
  std::unique_ptr<ModelSession> make_session() const override;

  PlanCounts plan_counts() const override {
    const jit::PlanStats stats = method_.plan_stats();
    return {.are_made = makes_plans_,
            .hits = stats.hits,
            .misses = stats.misses,
            .evictions = stats.evictions,
            .failures = stats.failures,
            .refused = stats.refused,
            .build_seconds = static_cast<double>(stats.build_ns) * 1e-9,
            .plans = stats.programs,
            .arena_bytes = stats.arena_bytes,
            .failed_passes = stats.failed_passes};
  }

  // Destination memory for outputs, by their index in the result. Empty if the order of results is unknown before the
  // run or a later run could change the outputs.
  std::vector<jit::ResultMemory> result_memory(std::span<const OutputPlace> places) const {
    std::vector<jit::ResultMemory> memory;
    if (!own_outputs_are_complete_ || responds_with_items_ || method_.changes_state()) return memory;
    for (const OutputPlace& place : places) {
      for (size_t i = 0; i < signature_.outputs.size(); ++i) {
        if (!signature_.outputs[i].answers_to(place.name)) continue;
        memory.push_back({static_cast<size_t>(outputs_.own_index(i)), place.memory});
      }
    }
    return memory;
  }

  void release_unused_memory() const override {
    // Another worker may be writing to the module's pages, so they cannot be replaced by the file's.
    if (method_.changes_state()) return;
    const uint64_t programs = method_.plan_stats().misses;
    if (released_at_programs_.exchange(programs, std::memory_order_relaxed) == programs) return;
    module_->release_file_memory();
    trim_allocators();
    malloc_trim(0);  // memory freed after compilation
  }

  RunResult run(jit::Frame& frame, std::span<const InferTensor* const> inputs, const RunOptions& options) const {
    const ops::GeneratorGuard own_numbers(generator_);
    Copies copies;
    absl::InlinedVector<ops::Value, 4> arguments;
    for (const BoundArgument& bound : arguments_) arguments.push_back(argument_value(bound, inputs, copies));
    // Runs that change the module are serialized; other models never take this lock.
    std::unique_lock<Mutex> lock(state_mutex_, std::defer_lock);
    if (method_.changes_state()) lock.lock();
    const std::vector<jit::ResultMemory> memory = result_memory(options.places);
    ops::Value value = method_.run(frame, arguments,
                                   {.is_cancelled = &options.is_cancelled,
                                    .result_memory = memory,
                                    .plans_in_background = options.plans_in_background});
    module_->check_file();
    RunResult result;
    result.copied_bytes = copies.size_bytes();
    if (responds_with_items_) {
      for (const ops::Value& item : value.to_list()->items) {
        result.outputs = flatten_result(item, whole_result_, own_output_names_);
        finish_outputs(result, options.resident);
        result.responses.push_back(std::exchange(result.outputs, {}));
      }
    } else {
      result.outputs = flatten_result(value, whole_result_, own_output_names_);
      finish_outputs(result, options.resident);
    }
    copies.bring_back();
    if (!device_.is_host()) synchronize(device_);  // kernels have found all errors there are
    frame.recycle(std::move(value));
    return result;
  }

  Device device() const { return device_; }

 private:
  // Random numbers drawn while loading come from the model's own generator too.
  std::shared_ptr<jit::Module> load_module(const std::string& file, const jit::LoadOptions& options) const {
    const ops::GeneratorGuard own_numbers(generator_);
    return jit::Module::load(file, options);
  }

  // One input for each part of a dict or list of tensors, under the names in config.pbtxt.
  void add_parts(const std::string& file, const ModelConfig& config, size_t index, BoundArgument& bound) {
    for (const std::string& name : gathered_names(file, method_.schema(), index, config)) {
      TensorSpec spec;
      spec.name = name;
      bound.parts.push_back({part_key(*bound.argument, name), static_cast<int>(signature_.inputs.size())});
      signature_.inputs.push_back(std::move(spec));
    }
  }

  void add_argument(const std::string& file, const ModelConfig& config, size_t index) {
    const ops::Argument& argument = method_.schema().arguments[index];
    BoundArgument bound{.argument = &argument};
    const bool is_optional = argument.default_value || argument.type->kind() == ops::TypeKind::kOptional;
    if (is_feedable(*argument.type)) {
      TensorSpec spec;
      spec.name = argument.name;
      spec.aliases = {input_name(index)};
      spec.is_optional = is_optional;
      spec.takes_bytes = takes_bytes(*argument.type);
      if (spec.takes_bytes) spec.datatype = DataType::kBytes;
      if (const jit::MethodSignature* known = module_->signature(kMethod))
        describe_from_file(known->inputs.at(index), spec);
      bound.spec = static_cast<int>(signature_.inputs.size());
      signature_.inputs.push_back(std::move(spec));
    } else if (is_gathered(*argument.type)) {
      add_parts(file, config, index, bound);
    } else if (!is_optional) {
      fail(ErrorCode::kUnimplemented, file, ": argument '", argument.name, "' of ", kMethod, " has type ",
           argument.type->str(), ", which a request cannot carry", way_out(*argument.type));
    }
    arguments_.push_back(bound);
  }

  // Takes datatype and shape from the model's file.
  static void describe_from_file(const jit::TensorSignature& known, TensorSpec& spec) {
    if (known.dtype && !is_complex(*known.dtype)) spec.datatype = from_dtype(*known.dtype);
    if (known.shape) spec.shape = known.shape;
  }

  // A TorchScript file does not describe its tensors, so take what its graph implies.
  void describe_from_graph() {
    const std::vector<jit::KnownInput> known = jit::find_known_inputs(method_);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i].spec < 0) continue;
      TensorSpec& spec = signature_.inputs[static_cast<size_t>(arguments_[i].spec)];
      spec.known = known[i];
      // With a batch dimension, the type alone does not determine the dimensions.
      if (signature_.max_batch_size == 0) describe_argument(*arguments_[i].argument->type, spec.known);
    }
  }

  void describe_results_from_graph(std::vector<TensorSpec>& own) const {
    std::vector<jit::KnownInput> inputs(arguments_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i].spec < 0) continue;
      const TensorSpec& spec = signature_.inputs[static_cast<size_t>(arguments_[i].spec)];
      inputs[i] = spec.known;
      if (spec.datatype) inputs[i].dtype = to_dtype(*spec.datatype);
    }
    const std::vector<jit::KnownInput> known = jit::find_known_results(method_, inputs);
    for (size_t i = 0; known.size() == own.size() && i < own.size(); ++i) {
      if (!own[i].datatype && !own[i].shape) own[i].known = known[i];
    }
  }

  // The names in an ONNX file are its interface. Argument names are internal to the code, and Triton matches arguments
  // by order.
  bool goes_by_names() const { return signature_.platform == "onnxruntime_onnx"; }

  // A configured input refers to the argument of its name, otherwise to the one whose number it has, or to the one at
  // `place`.
  void configure_input(const std::string& file, const ModelConfig::TensorConfig& input, size_t place, bool has_batch) {
    auto& specs = signature_.inputs;
    auto spec = std::find_if(specs.begin(), specs.end(),
                             [&](const TensorSpec& candidate) { return candidate.answers_to(input.name); });
    if (spec == specs.end()) {
      const bool has_parts = std::ranges::any_of(arguments_, [](const auto& bound) { return !bound.parts.empty(); });
      check(!has_parts, file, ": config.pbtxt names input '", input.name, "', which no argument of ", kMethod,
            " takes");
      check(!goes_by_names() || is_numbered(input.name, "INPUT__"), file, ": config.pbtxt names input '", input.name,
            "', but the inputs of the file are ", names_of(specs));
      place = trailing_index(input.name, place);
      check(place < specs.size(), file, ": config.pbtxt names input '", input.name, "', but ", kMethod, " takes ",
            specs.size());
      spec = specs.begin() + static_cast<ptrdiff_t>(place);
    }
    check(configured_.insert(spec->name).second, file, ": config.pbtxt has two inputs for argument '", spec->name, "'");
    const std::optional<DataType> in_file = spec->datatype;
    apply_config(input, file, has_batch, *spec);
    check(!in_file || spec->takes_bytes || in_file == spec->datatype, file, ": config.pbtxt: input '", input.name,
          "' is of type ", input.datatype, ", but the model takes ", in_file ? name_of(*in_file) : "");
    configured_.insert(spec->name);
    check(spec->takes_bytes == (spec->datatype == DataType::kBytes), file, ": input '", input.name,
          "' cannot be of type ", input.datatype);
    spec->is_optional = spec->is_optional || input.is_optional;
    const auto bound = std::find_if(arguments_.begin(), arguments_.end(), [&](const BoundArgument& argument) {
      return argument.has_spec(static_cast<int>(spec - specs.begin()));
    });
    if (!bound->parts.empty()) return;
    std::string warning = check_configured(*bound->argument->type, *spec, has_batch, file);
    if (!warning.empty()) warnings_.push_back(std::move(warning));
  }

  // A scalar in a request could ask for any amount of work.
  bool has_tensor_arguments_only() const {
    return std::all_of(arguments_.begin(), arguments_.end(), [](const BoundArgument& bound) {
      return bound.argument->type->kind() == ops::TypeKind::kTensor;
    });
  }

  // Models whose rows affect each other's results are not batched (make_batch_rules). A configuration that asks for
  // batching gets a warning, or an error if there is no alternative.
  void check_mixing(const std::string& file, const ModelConfig& config) {
    if (signature_.mixing_operator.empty()) return;
    check(!config.sequence_batching || config.max_batch_size <= 1, file, ": sequence_batching with max_batch_size ",
          config.max_batch_size, ": sequences cannot share a run, as ", signature_.mixing_operator,
          " takes one scale for the whole batch; leave max_batch_size out, or give 1");
    const bool pads = std::ranges::any_of(config.inputs, [](const auto& input) { return input.allows_ragged_batch; });
    check(!pads || config.ragged.buckets.empty(), file, ": ragged_buckets: padding would change the scale that ",
          signature_.mixing_operator, " takes for the whole batch");
    if (config.dynamic_batching && config.max_batch_size > 1) {
      warnings_.push_back(concat(file, ": dynamic_batching joins no requests: ", signature_.mixing_operator,
                                 " takes one scale for the whole batch, so the rows of others would change an answer"));
    }
  }

  static bool is_straight(const jit::Block& block) {
    for (const jit::Node* node = block.first(); node != nullptr; node = node->next()) {
      switch (node->kind()) {
        case jit::NodeKind::kLoop:
        case jit::NodeKind::kCallMethod:
        case jit::NodeKind::kCallFunction:
        case jit::NodeKind::kCallValue:
        case jit::NodeKind::kFork: return false;
        default: break;
      }
      for (const jit::Block* inner : node->blocks()) {
        if (!is_straight(*inner)) return false;
      }
    }
    return true;
  }

  void find_written_arguments() {
    const auto inputs = method_.graph().inputs();
    const jit::AliasAnalysis aliases(method_.graph(), module_->object());
    const size_t first = inputs.size() - arguments_.size();  // self comes first
    for (size_t i = 0; i < arguments_.size(); ++i) {
      // A run that stores an argument in the module lets later runs write to it.
      arguments_[i].is_written = method_.changes_state() || aliases.has_writers(inputs[first + i]);
      signature_.writes_inputs = signature_.writes_inputs || arguments_[i].is_written;
      for (size_t k = 0; k < signature_.inputs.size(); ++k) {
        if (arguments_[i].has_spec(static_cast<int>(k))) signature_.inputs[k].is_written = arguments_[i].is_written;
      }
    }
  }

  void add_outputs(const std::string& file, const ModelConfig& config) {
    std::vector<TensorSpec> own;
    const auto& returns = method_.schema().returns;
    if (!returns.empty()) {
      const ops::Type* type = returns[0].type.get();
      if (responds_with_items_) {
        check(type->kind() == ops::TypeKind::kList, file, ": model_transaction_policy.decoupled: ", kMethod,
              " returns ", type->str(), ", but must return a list with an item for each response");
        type = type->element().get();
      }
      ops::TypePtr keyed;
      if (!responds_with_items_) {
        whole_result_ = returns[0].name;
        // A configured name that is not a key does not select an output by position either.
        const bool lists_none = config.outputs.empty() && server_tensors(config).outputs.empty();
        const bool may_hold_dicts = type->kind() == ops::TypeKind::kDict || type->kind() == ops::TypeKind::kTuple;
        if (lists_none && may_hold_dicts) {
          keyed = jit::result_type_with_keys(method_.graph());
          type = keyed.get();
        }
      }
      own = describe_result(*type, &own_outputs_are_complete_, whole_result_);
      if (own_outputs_are_complete_) {
        for (const TensorSpec& spec : own) own_output_names_.push_back(spec.name);
        if (!whole_result_.empty() && own.size() == 1) own.front().aliases = {"OUTPUT__0"};
      }
      const jit::MethodSignature* known = module_->signature(kMethod);
      if (known && !responds_with_items_ && own_outputs_are_complete_ && known->outputs.size() == own.size()) {
        for (size_t i = 0; i < own.size(); ++i) describe_from_file(known->outputs[i], own[i]);
      }
      if (!known && !responds_with_items_ && own_outputs_are_complete_) describe_results_from_graph(own);
    }
    outputs_ = ConfiguredOutputs(file, std::move(own), own_outputs_are_complete_, config,
                                 whole_result_.empty() ? "OUTPUT__" : whole_result_ + ".", goes_by_names());
    signature_.outputs = outputs_.specs();
    signature_.outputs_are_complete = outputs_.is_complete();
  }

  ops::Value argument_value(const BoundArgument& bound, std::span<const InferTensor* const> inputs,
                            Copies& copies) const {
    const ops::Argument& argument = *bound.argument;
    ops::Value value = bound.parts.empty() ? input_value(bound, bound.spec, *argument.type, inputs, copies)
                                           : gathered_value(bound, inputs, copies);
    return value.is_none() && argument.default_value ? *argument.default_value : value;
  }

  ops::Value gathered_value(const BoundArgument& bound, std::span<const InferTensor* const> inputs,
                            Copies& copies) const {
    std::vector<ops::Value> tensors;
    for (const ArgumentPart& part : bound.parts)
      tensors.push_back(input_value(bound, part.spec, *ops::tensor_type(), inputs, copies));
    return gather_argument(*bound.argument->type, bound.parts, tensors);
  }

  // Returns None if the request does not provide the input.
  ops::Value input_value(const BoundArgument& bound, int number, const ops::Type& type,
                         std::span<const InferTensor* const> inputs, Copies& copies) const {
    const InferTensor* input = number < 0 ? nullptr : inputs[static_cast<size_t>(number)];
    if (input == nullptr) return {};
    const TensorSpec& spec = signature_.inputs[static_cast<size_t>(number)];
    InferTensor reshaped;
    if (spec.reshape && spec.shape) {
      reshaped = *input;
      reshape(reshaped, *spec.shape, *spec.reshape);
      input = &reshaped;
    }
    ops::Value value = to_argument(type, *input);
    if (!value.is_strided()) return value;
    return may_write(value.to_tensor(), input->is_own, bound.is_written, copies);
  }

  // The only place where tensors from clients or other models enter this one. They may be read by others and must not
  // be written: a write goes to a copy, or fails if none was expected.
  Tensor may_write(Tensor tensor, bool is_own, bool is_written, Copies& copies) const {
    if (tensor.device() != device_) return copies.send(tensor, device_, is_own && is_written);
    if (method_.changes_state()) {  // it may keep the tensor after its memory is reused
      copies.made_bytes += tensor.size_bytes();
      return tensor.clone();
    }
    const bool is_writable = tensor.storage()->is_writable();
    if (is_writable ? is_own : !is_written) return tensor;
    copies.lent.push_back(lend(tensor));
    return copies.lent.back();
  }

  // Converts results as configured, brings them home, and copies those that a later run could change.
  void finish_outputs(RunResult& result, std::span<const std::string> resident) const {
    outputs_.apply(result.outputs);
    for (InferTensor& output : result.outputs) {
      if (!output.tensor.defined()) continue;
      if (!output.tensor.device().is_host() && !is_resident(output, resident)) {
        output.tensor = host_copy(output.tensor);
      } else if (method_.changes_state()) {
        output.tensor = output.tensor.clone();
        result.copied_bytes += output.tensor.size_bytes();
      }
    }
  }

  bool is_resident(const InferTensor& output, std::span<const std::string> resident) const {
    if (resident.empty()) return false;
    const auto spec = std::ranges::find(signature_.outputs, output.name, &TensorSpec::name);
    return std::ranges::any_of(resident, [&](const std::string& name) {
      return name == output.name || (spec != signature_.outputs.end() && spec->answers_to(name));
    });
  }

  // Per version: drawing numbers or manual_seed in one model does not affect others.
  mutable ops::Generator generator_;
  const Device device_;
  const std::shared_ptr<jit::Module> module_;
  const jit::Method& method_;
  const bool makes_plans_;
  Signature signature_;
  std::vector<BoundArgument> arguments_;
  bool responds_with_items_ = false;           // the method's list has an item for each response
  bool own_outputs_are_complete_ = true;       // the result type determines all outputs
  std::vector<std::string> own_output_names_;  // if own_outputs_are_complete_
  std::string whole_result_;                   // the file's name for the only result; empty: none
  ConfiguredOutputs outputs_;
  std::vector<std::string> warnings_;
  std::set<std::string> configured_;  // inputs that the configuration names
  mutable Mutex state_mutex_;
  mutable std::atomic<uint64_t> released_at_programs_{UINT64_MAX};  // signatures at the last release of memory
};

class TorchScriptSession final : public ModelSession {
 public:
  explicit TorchScriptSession(const TorchScriptModel& model)
      : model_(model), stream_(make_worker_stream(model.device())), frame_(jit::make_frame()) {}
  RunResult run(std::span<const InferTensor* const> inputs, const RunOptions& options) override {
    const ContextPart<&ExecutionContext::stream> scope(stream_.get());
    try {
      return model_.run(*frame_, inputs, options);
    } catch (const Error& error) {
      forget_work();
      throw with_shapes(error, inputs);
    } catch (...) {
      forget_work();
      throw;
    }
  }

 private:
  // Ends what a failed run has queued, so that the next one does not get its errors.
  void forget_work() const noexcept {
    if (!stream_) return;
    try {
      stream_->synchronize();
    } catch (const std::exception&) {
      // The run has an error already.
    }
  }

  const TorchScriptModel& model_;               // outlives its sessions: the version owns both
  const std::unique_ptr<DeviceStream> stream_;  // null on the host
  std::unique_ptr<jit::Frame> frame_;
};

std::unique_ptr<ModelSession> TorchScriptModel::make_session() const {
  return std::make_unique<TorchScriptSession>(*this);
}

}  // namespace

std::unique_ptr<Model> make_torchscript_model(const std::string& file, const ModelConfig& config,
                                              const jit::LoadOptions& options) {
  return std::make_unique<TorchScriptModel>(file, config, options);
}

}  // namespace tensord::server
