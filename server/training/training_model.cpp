#include "server/training/training_model.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/autograd/autocast.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/ir/alias.h"
#include "core/ops/registry.h"
#include "core/tensor/grad_mode.h"
#include "ops/view.h"
#include "server/training/builtin_loss.h"
#include "server/training/evaluation_metrics.h"

namespace tensord::server {
namespace {

using ops::TypeKind;
using ops::Value;

bool takes_tensor(const ops::Type& type) {
  return type.kind() == TypeKind::kTensor ||
         (type.kind() == TypeKind::kOptional && type.element()->kind() == TypeKind::kTensor);
}

// Finds the loss in a method's result: a tensor, the first element of a tuple, or the entry "loss" of a dict.
Value loss_of(const std::string& method, const Value& result) {
  if (result.is_tuple() && !result.to_tuple()->items.empty()) return result.to_tuple()->items.front();
  if (result.is_dict()) {
    const ops::DictObject& dict = *result.to_dict();
    const std::ptrdiff_t index = dict.find(Value("loss"));
    check(index >= 0, "loss.method: the dict that '", method, "' gives has no 'loss'");
    return dict.items()[static_cast<size_t>(index)].second;
  }
  return result;
}

// Dropout with p = 0 has no effect.
bool has_probability_zero(const jit::Node& node) {
  const auto& arguments = node.op()->schema.arguments;
  const auto found = std::ranges::find(arguments, "p", &ops::Argument::name);
  if (found == arguments.end()) return false;
  const jit::Node* const source = node.input(static_cast<size_t>(found - arguments.begin()))->node();
  if (source == nullptr || source->kind() != jit::NodeKind::kConstant) return false;
  return source->constant().is_number() && source->constant().to_scalar().to_double() == 0;
}

void find_local_operators(const jit::Block* block, std::set<std::string>& found) {
  for (const jit::Node* node = block->first(); node != nullptr; node = node->next()) {
    for (const jit::Block* inner : node->blocks()) find_local_operators(inner, found);
    if (node->kind() != jit::NodeKind::kOp) continue;
    if (node->op() != &ops::get_op(node->op()->schema.full_name())) continue;  // an operator override
    const std::string full(node->op()->schema.name);
    const std::string name = full.substr(full.rfind(':') + 1);
    for (const char* const part :
         {"batch_norm", "dropout", "rand", "bernoulli", "normal_", "uniform_", "multinomial"}) {
      if (name.find(part) != std::string::npos && !has_probability_zero(*node)) found.insert(name);
    }
  }
}

bool has_sparse_choice(const jit::Block* block) {
  for (const jit::Node* node = block->first(); node != nullptr; node = node->next()) {
    for (const jit::Block* inner : node->blocks()) {
      if (has_sparse_choice(inner)) return true;
    }
    if (node->kind() != jit::NodeKind::kOp) continue;
    for (const auto& argument : node->op()->schema.arguments) {
      if (argument.name == "sparse" || argument.name == "sparse_grad") return true;
    }
  }
  return false;
}

// Names of submodules that can be called.
std::vector<std::string> modules_with_forward(const jit::Module& module) {
  std::vector<std::string> out;
  for (const auto& [name, object] : module.named_modules()) {
    if (!name.empty() && module.functions().find_method(object->type->name(), "forward")) out.push_back(name);
  }
  return out;
}

// "__torch__.net.Block" of "__torch__.net.___torch_mangle_3.Block": torch.jit names a class so for each instance.
std::string unmangled(const std::string& type) {
  const size_t begin = type.find("___torch_mangle_");
  if (begin == std::string::npos) return type;
  const size_t end = type.find('.', begin);
  return end == std::string::npos ? type.substr(0, begin) : type.substr(0, begin) + type.substr(end + 1);
}

// Elements of lists ("layers.0") of which there are several of one class, and which have submodules.
std::vector<std::string> repeated_blocks(const jit::Module& module) {
  std::map<std::string, std::vector<std::string>> by_list_and_class;
  const auto modules = module.named_modules();
  for (size_t i = 0; i < modules.size(); ++i) {
    const auto& [name, object] = modules[i];
    const size_t dot = name.rfind('.') + 1;  // 0 without a dot
    const bool is_element = dot < name.size() && name.find_first_not_of("0123456789", dot) == std::string::npos;
    // Depth first: a module's parts follow it.
    const bool has_parts = i + 1 < modules.size() && modules[i + 1].first.starts_with(name + ".");
    if (!is_element || !has_parts || !module.functions().find_method(object->type->name(), "forward")) continue;
    by_list_and_class[name.substr(0, dot) + ":" + unmangled(object->type->name())].push_back(name);
  }
  std::vector<std::string> out;
  for (const auto& [key, names] : by_list_and_class) {
    if (names.size() > 1) out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

// Whether a module that contains this one is in the set.
bool has_part_above(const std::string& name, const std::set<std::string>& names) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (names.contains(name.substr(0, dot))) return true;
  }
  return false;
}

}  // namespace

TrainingModel::TrainingModel(const std::string& archive, const LossSpec& loss,
                             const std::map<std::string, std::string>& inputs, bool needs_output,
                             std::vector<std::shared_ptr<const ops::Op>> operator_overrides, Device device,
                             std::optional<DType> autocast)
    : spec_(loss), device_(device), autocast_(autocast), frame_(jit::make_frame()) {
  jit::LoadOptions options;
  options.for_training = true;
  options.device = device;
  options.operator_overrides = std::move(operator_overrides);
  module_ = jit::Module::load(archive, options);
  for (const auto& [name, tensor] : module_->named_parameters()) {
    if (is_floating(tensor.dtype())) {
      dtype_ = tensor.dtype();
      break;
    }
  }
  class_weights_ = class_weights_of(spec_, dtype_, device_);
  if (!spec_.method.empty()) {
    check(module_->has_method(spec_.method), "loss.method: the model has no method '", spec_.method, "'");
    loss_call_ = bind(spec_.method, inputs);
  }
  if (spec_.method.empty() || needs_output) {
    check(module_->has_method("forward"), "loss.builtin: the model has no method 'forward'");
    forward_call_ = bind("forward", inputs);
    result_names_ = result_names(*forward_call_.method);
    check_output();
  }
  for (const auto& [argument, array] : inputs) {
    check(std::find(arrays_.begin(), arrays_.end(), array) != arrays_.end(), "data.inputs: the model has no argument '",
          argument, "'");
  }
  if (!spec_.label.empty()) label_ = index_of(spec_.label);
}

void TrainingModel::checkpoint_activations(const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  const std::vector<std::string> modules = modules_with_forward(*module_);
  const std::vector<std::string> blocks = repeated_blocks(*module_);
  std::set<std::string> wanted;
  for (const std::string& pattern : patterns) {
    const bool is_auto = pattern == "auto";
    bool is_used = false;
    for (const std::string& name : is_auto ? blocks : modules) {
      if (!is_auto && !matches_pattern(name, pattern)) continue;
      wanted.insert(name);
      is_used = true;
    }
    check(is_used, "activation_checkpointing: ",
          is_auto ? std::string("the model has no list of several blocks of one class")
                  : concat("no module of the model with a forward matches '", pattern, "'"));
  }
  for (const std::string& name : wanted) {
    if (!has_part_above(name, wanted)) module_->checkpoint_activations(name);
  }
}

int TrainingModel::index_of(const std::string& array) {
  auto found = std::find(arrays_.begin(), arrays_.end(), array);
  if (found == arrays_.end()) found = arrays_.insert(found, array);
  return static_cast<int>(found - arrays_.begin());
}

TrainingModel::Call TrainingModel::bind(const std::string& name, const std::map<std::string, std::string>& inputs) {
  Call call;
  call.method = &module_->method(name);
  const auto graph_inputs = call.method->graph().inputs();
  const auto& arguments = call.method->schema().arguments;
  const size_t first = graph_inputs.size() - arguments.size();  // self comes first
  const jit::AliasAnalysis aliases(call.method->graph(), module_->object());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ops::Argument& argument = arguments[i];
    const auto mapped = inputs.find(argument.name);
    const bool takes_default = argument.default_value.has_value() && mapped == inputs.end();
    if (!takes_default && !takes_tensor(*argument.type)) {
      fail(ErrorCode::kUnimplemented, "argument '", argument.name, "' of ", name, " has type ", argument.type->str(),
           "; data are tensors");
    }
    call.arguments.push_back(
        takes_default ? -1 : index_of(mapped == inputs.end() ? std::string(argument.name) : mapped->second));
    call.is_written.push_back(aliases.has_writers(graph_inputs[first + i]));
    const jit::MethodSignature* known = module_->signature(name);
    if (known == nullptr || call.arguments.back() < 0) continue;
    const std::optional<DType>& declared = known->inputs.at(i).dtype;
    if (declared && is_floating(*declared)) declared_[arrays_[static_cast<size_t>(call.arguments.back())]] = *declared;
  }
  return call;
}

Tensor TrainingModel::to_model_type(const std::string& name, const Tensor& array) const {
  const auto declared = declared_.find(name);
  const DType dtype = declared == declared_.end() ? dtype_ : declared->second;
  return is_floating(array.dtype()) && array.dtype() != dtype ? array.to(dtype) : array;
}

// Whether the loss uses the output of this name. As in requests, a single output is also called OUTPUT__0.
bool TrainingModel::is_output(const std::string& name) const {
  return name == spec_.output || (spec_.output == "OUTPUT__0" && result_names_.own.size() == 1);
}

// Checks the output's name if the result type determines all outputs.
void TrainingModel::check_output() const {
  const std::vector<std::string>& names = result_names_.own;
  const auto is_it = [this](const std::string& name) { return is_output(name); };
  if (spec_.output.empty() || names.empty() || std::ranges::any_of(names, is_it)) return;
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  fail(ErrorCode::kInvalidArgument, "loss.output: forward gives ", all, ", not '", spec_.output, "'");
}

std::vector<Tensor> TrainingModel::on_device(std::span<const Tensor> batch) const {
  std::vector<Tensor> out;
  for (const Tensor& tensor : batch) out.push_back(tensor.to(device_));
  return out;
}

Value TrainingModel::run(const Call& call, std::span<const Tensor> batch, const std::function<bool()>& is_cancelled) {
  std::vector<Value> values;
  const auto& arguments = call.method->schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (call.arguments[i] < 0) {
      values.push_back(*arguments[i].default_value);
      continue;
    }
    const Tensor& tensor = batch[static_cast<size_t>(call.arguments[i])];
    values.emplace_back(call.is_written[i] ? tensor.clone() : tensor);
  }
  return call.method->run(*frame_, values, {.is_cancelled = is_cancelled ? &is_cancelled : nullptr});
}

Value TrainingModel::run_in_precision(const Call& call, std::span<const Tensor> batch,
                                      const std::function<bool()>& is_cancelled) {
  std::optional<autograd::AutocastGuard> guard;
  if (autocast_) guard.emplace(device_.kind, *autocast_);
  return run(call, batch, is_cancelled);
}

Tensor TrainingModel::output_of(const Value& result) const {
  Tensor output = find_output(result);
  return autocast_ && output.dtype() == *autocast_ ? ops::to(output, DType::kFloat32) : output;
}

Tensor TrainingModel::find_output(const Value& result) const {
  if (result.is_strided() && spec_.output.empty()) return result.to_tensor();
  std::string names;
  for (const InferTensor& output : flatten_result(result, result_names_.whole, result_names_.own)) {
    if (output.tensor.defined() && (spec_.output.empty() || is_output(output.name))) return output.tensor;
    names += (names.empty() ? "" : ", ") + output.name;
  }
  fail(ErrorCode::kInvalidArgument, "loss.output: forward gives ", names.empty() ? "no tensor" : names, ", not '",
       spec_.output, "'");
}

Tensor TrainingModel::compare(const Tensor& output, const Tensor& label) const {
  return builtin_loss(spec_, output, label, class_weights_);
}

void TrainingModel::check_all_rows_count(std::span<const Tensor> batch) const {
  if (spec_.builtin != "cross_entropy" && spec_.builtin != "nll") return;
  const Tensor& given = batch[static_cast<size_t>(label_)];
  if (is_floating(given.dtype())) return;
  const Tensor labels = given.to(DType::kInt64).contiguous();
  const int64_t* values = labels.data<int64_t>();
  if (std::find(values, values + labels.numel(), kIgnoreIndex) == values + labels.numel()) return;
  fail(ErrorCode::kUnimplemented, "loss.label: '", spec_.label, "' has ", kIgnoreIndex,
       ", a place that does not count; each rank would count its own places, so not with a distribution");
}

Tensor TrainingModel::loss(std::span<const Tensor> batch, const std::function<bool()>& is_cancelled) {
  Tensor loss;
  if (spec_.method.empty()) {
    const Tensor output = output_of(run_in_precision(forward_call_, batch, is_cancelled));
    if (std::exchange(is_first_, false)) warning_ = check_first_output(spec_, autograd::detach(output));
    loss = compare(output, batch[static_cast<size_t>(label_)]);
  } else {
    const Value value = loss_of(spec_.method, run_in_precision(loss_call_, batch, is_cancelled));
    check(value.is_strided(), "loss.method: '", spec_.method, "' gives a ", value.tag_name(), ", not a tensor");
    loss = value.to_tensor();
  }
  check(loss.numel() == 1, "the loss must be a single number, but has shape ", loss.sizes());
  check(is_floating(loss.dtype()), "the loss must be a floating number, but is ", name_of(loss.dtype()));
  return loss;
}

TrainingModel::Evaluated TrainingModel::evaluate(std::span<const Tensor> given,
                                                 const std::function<bool()>& is_cancelled) {
  const std::vector<Tensor> batch = on_device(given);
  const NoGradGuard no_grad;
  Evaluated out;
  if (label_ >= 0) out.label = batch[static_cast<size_t>(label_)];
  if (forward_call_.method != nullptr) {
    out.output = output_of(run_in_precision(forward_call_, batch, is_cancelled));
  }
  if (spec_.method.empty()) {
    out.loss = compare(out.output, out.label);
  } else {
    out.loss = loss(batch, is_cancelled);
  }
  for (const auto& [name, call] : metric_calls_) {
    const Value value = run(call, std::array{out.output, out.label}, is_cancelled);
    const bool is_number = value.is_strided() ? value.to_tensor().numel() == 1 : value.is_float() || value.is_int();
    check(is_number, "evaluation.metrics: '", name, "' must return one number, but returns ",
          value.is_strided() ? describe(value.to_tensor()) : std::string(value.tag_name()));
    out.metrics[name] = value.is_strided() ? value.to_tensor().item_double() : value.to_scalar().to_double();
  }
  return out;
}

void TrainingModel::use_metrics(const std::vector<std::string>& metrics) {
  for (const std::string& name : metrics) {
    if (!EvaluationMetrics::is_own(name)) continue;
    check(module_->has_method(name), "evaluation.metrics: the model has no method '", name, "'");
    Call call{.method = &module_->method(name), .arguments = {0, 1}, .is_written = {}};
    const auto& arguments = call.method->schema().arguments;
    check(arguments.size() == 2 && takes_tensor(*arguments[0].type) && takes_tensor(*arguments[1].type),
          "evaluation.metrics: '", name, "' must take two tensors, the output and the label");
    const jit::AliasAnalysis aliases(call.method->graph(), module_->object());
    const auto inputs = call.method->graph().inputs();
    for (size_t i = inputs.size() - 2; i < inputs.size(); ++i)
      call.is_written.push_back(aliases.has_writers(inputs[i]));
    metric_calls_[name] = std::move(call);
  }
}

const jit::Block* TrainingModel::block_of_loss() const {
  const Call& call = loss_call_.method != nullptr ? loss_call_ : forward_call_;
  return call.method->graph().block();
}

std::vector<std::string> TrainingModel::methods_of_loss() const {
  return {spec_.method.empty() ? std::string("forward") : spec_.method};
}

bool TrainingModel::may_have_sparse_gradients() const { return has_sparse_choice(block_of_loss()); }

std::string TrainingModel::local_operators() const {
  std::set<std::string> found;
  find_local_operators(block_of_loss(), found);
  std::string out;
  for (const std::string& name : found) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::vector<std::pair<std::string, Tensor>> TrainingModel::trained_parameters() const {
  std::vector<std::pair<std::string, Tensor>> out;
  for (auto& [name, tensor] : module_->named_parameters()) {
    if (autograd::requires_grad(tensor)) out.emplace_back(std::move(name), std::move(tensor));
  }
  return out;
}

}  // namespace tensord::server
