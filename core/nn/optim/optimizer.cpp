#include "core/nn/optim/optimizer.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/nn/optim/clip_grad.h"
#include "core/nn/state.h"
#include "core/ops/dispatch.h"
#include "core/ops/run.h"
#include "core/ops/to_device.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/grad_mode.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::nn {

using ops::DictObject;
using ops::Value;

const Value* Options::find(std::string_view name) const {
  for (const Item& item : items_) {
    if (item.first == name) return &item.second;
  }
  return nullptr;
}

void Options::set(std::string_view name, Value value) {
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::string(name), std::move(value));
}

namespace {

const Value& require(const Value* value, std::string_view name) {
  check(value != nullptr, "option \"", name, "\" is missing");
  return *value;
}

// Options that schedules store in the groups, as PyTorch's do.
bool is_of_schedule(std::string_view name) {
  constexpr std::string_view kNames[] = {"initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

double Options::number(std::string_view name) const { return to_number(require(find(name), name), name); }
int64_t Options::integer(std::string_view name) const { return to_integer(require(find(name), name), name); }
bool Options::flag(std::string_view name) const {
  const Value& value = require(find(name), name);
  check(value.is_bool(), "option \"", name, "\": expected a bool but got ", value.tag_name());
  return value.to_bool();
}
std::pair<double, double> Options::pair(std::string_view name) const {
  const auto& items = get_items(require(find(name), name), name);
  check(items.size() == 2, "option \"", name, "\": expected two numbers but got ", items.size());
  return {to_number(items[0], name), to_number(items[1], name)};
}

Optimizer::Optimizer(std::string kind, Options defaults, std::vector<const char*> tensor_names, StepKind step_kind,
                     const char* step_op, const char* instead)
    : kind_(std::move(kind)),
      defaults_(std::move(defaults)),
      tensor_names_(std::move(tensor_names)),
      step_kind_(step_kind),
      step_op_(*step_op ? &ops::get_op(step_op) : nullptr),
      instead_(instead) {}

void Optimizer::add_param_groups(std::vector<ParamGroup> groups) {
  check(!groups.empty(), "optimizer got an empty parameter list");
  for (ParamGroup& group : groups) add_param_group(std::move(group));
}

Options Optimizer::merged(const Options& options) const {
  Options all = defaults_;
  for (const auto& [name, value] : options.items()) {
    check(defaults_.has(name) || is_of_schedule(name), kind_, " has no option \"", name, "\"");
    all.set(name, value);
  }
  return all;
}

void Optimizer::set_defaults(const Options& options) {
  Options all = merged(options);
  check_options(all);
  defaults_ = std::move(all);
}

void Optimizer::add_param_group(ParamGroup group) {
  std::unordered_set<const TensorImpl*> known;
  for (const ParamGroup& other : groups_) {
    for (const Tensor& param : other.params) known.insert(param.impl());
  }
  std::unordered_set<const TensorImpl*> added;
  for (const Tensor& param : group.params) {
    check(param.defined(), kind_, ": a parameter is undefined");
    check(autograd::is_leaf(param) || autograd::retains_grad(param), "can't optimize a non-leaf Tensor");
    check(!known.contains(param.impl()), "some parameters appear in more than one parameter group");
    check(added.insert(param.impl()).second, "optimizer contains a parameter group with duplicate parameters");
  }
  group.options = merged(group.options);
  check_options(group.options);
  groups_.push_back(std::move(group));
}

void Optimizer::keep_only(std::span<const Tensor> params) {
  kept_.emplace();
  for (const Tensor& param : params) kept_->insert(param.impl());
  std::erase_if(states_, [this](const auto& item) { return !kept_->contains(item.first); });
}

void Optimizer::use_master_weights() {
  if (!states_.empty())
    fail(ErrorCode::kFailedPrecondition, kind_, ": master weights must be enabled before the first step");
  has_masters_ = true;
}

// Creates the master weights, or merges writes to the parameter since the last step: elements that still equal the
// rounded master keep its extra bits.
void Optimizer::follow(State& state, const Tensor& param) const {
  if (state.master.defined() && state.written_version == param.version()) return;
  const Tensor given = param.to(DType::kFloat32);
  if (!state.master.defined()) {
    state.master = zeros_for(Tensor::meta_strided(param.sizes(), param.strides(), DType::kFloat32, param.device()));
    state.master.copy_from(given);
    return;
  }
  const Tensor is_same = ops::eq(state.master.to(param.dtype()), param);
  state.master.copy_from(ops::where(is_same, state.master, given));
}

void Optimizer::set_options(const Options& options) {
  std::vector<Options> changed;
  for (const ParamGroup& group : groups_) {
    changed.push_back(group.options);
    for (const auto& [name, value] : options.items()) {
      check(group.options.has(name), kind_, " has no option \"", name, "\"");
      changed.back().set(name, value);
    }
    check_options(changed.back());
  }
  for (size_t i = 0; i < groups_.size(); ++i) groups_[i].options = std::move(changed[i]);
}

// By layout of the gradients: one operator updates each list.
struct Optimizer::GroupUpdates {
  std::map<Functionality, std::vector<Update>> plain, rounded;
  std::vector<std::pair<Tensor, State*>> scaled;  // with masters that are updated by unscaled gradients
};

Tensor Optimizer::step(const Closure& closure) {
  Tensor loss;
  if (closure) {
    const EnableGradGuard with_grad;
    loss = closure();
  }
  const NoGradGuard without_grad;
  check_gradients();
  for (const ParamGroup& group : groups_) {
    const GroupUpdates all = take_gradients(group);
    for (const auto& [layout, updates] : all.plain) update(group.options, updates);
    for (const auto& [layout, updates] : all.rounded) update(group.options, updates);
    for (const auto& [param, state] : all.scaled) {
      ops::copy_(param, state->master);
      state->written_version = param.version();
    }
    for (const auto& [layout, updates] : all.rounded) {
      for (const Update& each : updates) each.state->written_version = each.rounded.version();
    }
  }
  return loss;
}

Optimizer::GroupUpdates Optimizer::take_gradients(const ParamGroup& group) {
  GroupUpdates out;
  for (const Tensor& param : group.params) {
    Tensor grad = keeps(param) ? autograd::grad(param) : Tensor();
    if (!grad.defined()) continue;
    State& state = states_[param.impl()];
    ++state.step;
    const Functionality layout = (grad.impl()->keys() & kLayoutKeys).highest();
    const bool has_copy = has_master(param);
    if (has_copy) follow(state, param);
    if (gradient_scale_ != 1) {
      const Tensor wide = has_copy ? ops::to(grad, DType::kFloat32) : grad;
      out.plain[layout].push_back({has_copy ? state.master : param, ops::mul(wide, 1 / gradient_scale_), &state});
      if (has_copy) out.scaled.emplace_back(param, &state);
    } else if (has_copy) {
      out.rounded[layout].push_back({state.master, std::move(grad), &state, param});
    } else {
      out.plain[layout].push_back({param, std::move(grad), &state});
    }
  }
  return out;
}

bool Optimizer::takes(const Tensor& gradient) const { return !step_op_ || ops::has_kernel(*step_op_, gradient); }

// Checked before anything changes.
void Optimizer::check_gradients() const {
  for (const ParamGroup& group : groups_) {
    for (const Tensor& param : group.params) {
      const Tensor grad = keeps(param) ? autograd::grad(param) : Tensor();
      if (!grad.defined()) continue;
      check(param.dtype() == DType::kFloat32 || param.dtype() == DType::kFloat64 || has_master(param), kind_, ": ",
            name_of(param.dtype()), " cannot be trained");
      if (takes(grad)) continue;
      fail(ErrorCode::kUnimplemented, kind_, " does not support ", grad.is_strided() ? "dense" : "sparse", " gradients",
           instead_ ? concat(", please consider ", instead_, " instead") : "");
    }
  }
}

void Optimizer::update(const Options&, std::span<const Update>) {}

void Optimizer::zero_grad(bool set_to_none) {
  for (const ParamGroup& group : groups_) nn::zero_grad(group.params, set_to_none);
}

Tensor Optimizer::zeros_for(const Tensor& param) {
  const bool is_dense = is_non_overlapping_and_dense(param.sizes(), param.strides());
  const Tensor zeros = Tensor::empty_strided(
      param.sizes(), is_dense ? param.strides() : contiguous_strides(param.sizes()), param.dtype(), param.device());
  device_runtime(zeros.device()).fill(zeros.raw_data(), 0, zeros.size_bytes(), current_stream(zeros.device()));
  return zeros;
}

Value Optimizer::save_state(const State& state) const {
  const ops::Dict saved = new_state();
  if (step_kind_ == StepKind::kInt) set_item(saved, "step", state.step);
  if (step_kind_ == StepKind::kTensor) set_item(saved, "step", Tensor::scalar(static_cast<float>(state.step)));
  for (size_t i = 0; i < tensor_names_.size(); ++i) {
    const Tensor tensor = i < state.tensors.size() ? state.tensors[i] : Tensor();
    // PyTorch's state always has the first tensor; the others only if in use.
    if (tensor.defined() || i == 0) set_item(saved, tensor_names_[i], tensor);
  }
  if (state.master.defined()) set_item(saved, "master_param", state.master);
  return saved;
}

Value Optimizer::state_dict() const {
  const ops::Dict states = new_indexed_state();
  std::vector<Value> groups;
  int64_t id = 0;
  for (const ParamGroup& group : groups_) {
    const ops::Dict saved = new_state();
    for (const auto& [name, value] : group.options.items()) set_item(saved, name, value);
    std::vector<int64_t> ids;
    for (const Tensor& param : group.params) {
      const auto found = states_.find(param.impl());
      if (found != states_.end()) states->set(Value(id), save_state(found->second));
      ids.push_back(id++);
    }
    set_item(saved, "params", ops::make_int_list(ids));
    groups.emplace_back(saved);
  }
  if (const ops::Dict extra = save_extra()) states->set(Value(int64_t{0}), Value(extra));
  const ops::Dict result = new_state();
  set_item(result, "state", Value(states));
  set_item(result, "param_groups",
           ops::make_list(ops::dict_type(ops::string_type(), ops::any_type()), std::move(groups)));
  return result;
}

Optimizer::State Optimizer::load_state(const DictObject& saved, const Tensor& param) const {
  State state;
  if (step_kind_ != StepKind::kNone) state.step = get_integer(saved, "step");
  state.tensors.resize(tensor_names_.size());
  const Tensor like =
      has_master(param) ? Tensor::meta_strided(param.sizes(), param.strides(), DType::kFloat32, param.device()) : param;
  const auto load = [&](const char* name) -> Tensor {
    const Value* value = find_item(saved, name);
    if (!value || value->is_none()) return {};
    check(value->is_tensor() && value->to_tensor().sizes() == param.sizes() &&
              (value->is_strided() || takes(value->to_tensor())),
          kind_, ": state \"", name, "\" is not like its parameter, ", describe(param));
    if (!value->is_strided()) {
      const Tensor own = ops::to(ops::clone(value->to_tensor()), like.dtype());
      return ops::to_device(own, param.device()).to_tensor();
    }
    const Tensor tensor = zeros_for(like);
    tensor.copy_from(value->to_tensor());
    return tensor;
  };
  for (size_t i = 0; i < tensor_names_.size(); ++i) state.tensors[i] = load(tensor_names_[i]);
  // Saved together with this parameter; follow() merges later writes to the parameter.
  if (has_master(param)) state.master = load("master_param");
  return state;
}

Options Optimizer::load_options(const DictObject& saved) const {
  Options options = defaults_;
  for (const auto& [name, value] : saved.items()) {
    // Newer PyTorch versions have more options, which are None or false if unused.
    if (!name.is_string() || name.to_string() == "params") continue;
    const bool is_known = defaults_.has(name.to_string()) || is_of_schedule(name.to_string());
    if (is_known) options.set(name.to_string(), value);
  }
  check_options(options);
  return options;
}

void Optimizer::load_state_dict(const Value& state) {
  const DictObject& saved = as_dict(state, concat(kind_, ": state dict"));
  const auto& groups = get_items(get_item(saved, "param_groups"), "param_groups");
  check(groups.size() == groups_.size(), "loaded state dict has a different number of parameter groups");
  const DictObject& states = as_dict(get_item(saved, "state"), "state");
  std::vector<Options> options;
  std::unordered_map<const TensorImpl*, State> loaded;
  for (size_t i = 0; i < groups.size(); ++i) {
    const DictObject& group = as_dict(groups[i], "param_groups");
    const auto& ids = get_items(get_item(group, "params"), "params");
    check(ids.size() == groups_[i].params.size(),
          "loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
    options.push_back(load_options(group));
    for (size_t p = 0; p < ids.size(); ++p) {
      const std::ptrdiff_t at = states.find(ids[p]);
      const Tensor& param = groups_[i].params[p];
      if (at < 0 || !keeps(param)) continue;
      loaded[param.impl()] = load_state(as_dict(states.items()[static_cast<size_t>(at)].second, "state"), param);
    }
  }
  load_extra(states);
  for (size_t i = 0; i < groups_.size(); ++i) groups_[i].options = std::move(options[i]);
  states_ = std::move(loaded);
}

}  // namespace tensord::nn
