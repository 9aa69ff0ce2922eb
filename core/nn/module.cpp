#include "core/nn/module.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/autograd/variable.h"
#include "core/base/dotted_name.h"
#include "core/nn/optim/clip_grad.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

// Replaces the contents of `tensor` by those of `value`, for all handles.
void assign(const Tensor& tensor, const Tensor& value) {
  TensorImpl& to = *tensor.impl();
  const TensorImpl& from = *value.impl();
  to.storage = from.storage;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.offset = from.offset;
  to.dtype = from.dtype;
  to.device = from.device;
}

// The same for a parameter. Autograd state belongs to the old contents: gradients and hooks are dropped.
void assign_parameter(const Tensor& parameter, const Tensor& value) {
  const bool requires_grad = autograd::requires_grad(parameter);
  parameter.impl()->autograd = {};
  assign(parameter, value);
  autograd::set_requires_grad(parameter, requires_grad);
}

}  // namespace

void Module::check_name(const std::string& name) const {
  check(!name.empty() && name.find('.') == std::string::npos, kind_, ": \"", name,
        "\" cannot name a parameter, buffer or module");
  const auto has_name = [&](const auto& items, const auto& name_of) {
    return std::any_of(items.begin(), items.end(), [&](const auto& item) { return name_of(item) == name; });
  };
  const bool is_taken = has_name(parameters_, [](const NamedTensor& p) { return p.name; }) ||
                        has_name(buffers_, [](const Buffer& b) { return b.name; }) ||
                        has_name(children_, [](const auto& child) { return child.first; });
  check(!is_taken, kind_, ": attribute \"", name, "\" already exists");
}

Tensor Module::register_parameter(const std::string& name, Tensor value, bool requires_grad) {
  check_name(name);
  if (value.defined()) autograd::set_requires_grad(value, requires_grad);
  parameters_.push_back({name, value});
  return value;
}

Tensor Module::register_buffer(const std::string& name, Tensor value, bool is_persistent) {
  check_name(name);
  buffers_.push_back({name, value, is_persistent});
  return value;
}

void Module::add_module(const std::string& name, std::shared_ptr<Module> module) {
  check_name(name);
  check(module != nullptr, kind_, ": module \"", name, "\" is null");
  children_.emplace_back(name, std::move(module));
}

template <class Visit>
void Module::visit_modules(const std::string& prefix, std::vector<const Module*>& seen, const Visit& visit) const {
  if (std::find(seen.begin(), seen.end(), this) != seen.end()) return;
  seen.push_back(this);
  visit(prefix, *this);
  for (const auto& [name, child] : children_) child->visit_modules(joined(prefix, name), seen, visit);
}

std::vector<NamedTensor> Module::named_parameters(bool recurse) const {
  std::vector<NamedTensor> found;
  std::unordered_set<const TensorImpl*> known;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const NamedTensor& parameter : module.parameters_) {
      if (!parameter.tensor.defined() || !known.insert(parameter.tensor.impl()).second) continue;
      found.push_back({joined(prefix, parameter.name), parameter.tensor});
    }
  };
  std::vector<const Module*> seen;
  if (recurse)
    visit_modules("", seen, add);
  else
    add("", *this);
  return found;
}

std::vector<NamedTensor> Module::named_buffers(bool recurse) const {
  std::vector<NamedTensor> found;
  std::unordered_set<const TensorImpl*> known;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const Buffer& buffer : module.buffers_) {
      if (!buffer.tensor.defined() || !known.insert(buffer.tensor.impl()).second) continue;
      found.push_back({joined(prefix, buffer.name), buffer.tensor});
    }
  };
  std::vector<const Module*> seen;
  if (recurse)
    visit_modules("", seen, add);
  else
    add("", *this);
  return found;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, Module*>> found;
  std::vector<const Module*> seen;
  visit_modules("", seen, [&](const std::string& name, const Module& module) {
    found.emplace_back(name, const_cast<Module*>(&module));
  });
  return found;
}

Tensors Module::parameters(bool recurse) const {
  Tensors tensors;
  for (NamedTensor& parameter : named_parameters(recurse)) tensors.push_back(std::move(parameter.tensor));
  return tensors;
}

Module& Module::submodule(std::string_view name) {
  Module* at = this;
  for (const std::string& part : dotted_parts(name)) {
    const auto found = std::find_if(at->children_.begin(), at->children_.end(),
                                    [&](const auto& child) { return child.first == part; });
    if (found == at->children_.end()) fail(ErrorCode::kNotFound, kind_, ": there is no module \"", name, "\"");
    at = found->second.get();
  }
  return *at;
}

void Module::train(bool is_training) {
  is_training_ = is_training;
  for (const auto& [name, child] : children_) child->train(is_training);
}

void Module::requires_grad_(bool value) {
  for (const Tensor& parameter : parameters()) autograd::set_requires_grad(parameter, value);
}

void Module::zero_grad(bool set_to_none) { nn::zero_grad(parameters(), set_to_none); }

void Module::to(DType dtype) {
  check(is_floating(dtype), kind_, ": expected a floating dtype but got ", name_of(dtype));
  const NoGradGuard without_grad;
  for (const Tensor& parameter : parameters()) {
    if (!is_floating(parameter.dtype()) || parameter.dtype() == dtype) continue;
    assign_parameter(parameter, parameter.to(dtype));
  }
  for (const NamedTensor& buffer : named_buffers()) {
    if (is_floating(buffer.tensor.dtype())) assign(buffer.tensor, buffer.tensor.to(dtype));
  }
}

void Module::to(Device device) {
  const NoGradGuard without_grad;
  for (const Tensor& parameter : parameters()) {
    if (parameter.device() != device) assign_parameter(parameter, parameter.to(device));
  }
  for (const NamedTensor& buffer : named_buffers()) assign(buffer.tensor, buffer.tensor.to(device));
}

void Module::apply(const std::function<void(Module&)>& function) {
  std::vector<const Module*> seen;
  for (const auto& [name, child] : children_) {
    if (std::find(seen.begin(), seen.end(), child.get()) != seen.end()) continue;
    seen.push_back(child.get());
    child->apply(function);
  }
  function(*this);
}

void Module::collect_state(const std::string& prefix, StateDict& state) const {
  for (const NamedTensor& parameter : parameters_) {
    if (parameter.tensor.defined()) state.push_back({joined(prefix, parameter.name), parameter.tensor});
  }
  for (const Buffer& buffer : buffers_) {
    if (buffer.is_persistent && buffer.tensor.defined()) state.push_back({joined(prefix, buffer.name), buffer.tensor});
  }
  for (const auto& [name, child] : children_) child->collect_state(joined(prefix, name), state);
}

StateDict Module::state_dict() const {
  StateDict state;
  collect_state("", state);
  return state;
}

StateDictDifference Module::load_state_dict(const StateDict& state, bool strict) {
  StateDictDifference difference;
  std::map<std::string_view, Tensor> given;
  for (const NamedTensor& item : state) {
    check(item.tensor.defined(), "state_dict: \"", item.name, "\" is undefined");
    given[item.name] = item.tensor;
  }
  std::string problems;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const NamedTensor& own : state_dict()) {
    const auto found = given.find(own.name);
    if (found == given.end()) {
      difference.missing.push_back(own.name);
      continue;
    }
    const Tensor& value = found->second;
    if (value.sizes() != own.tensor.sizes()) {
      problems += concat("\n\tsize mismatch for ", own.name, ": copying a param with shape ", to_string(value.sizes()),
                         " from checkpoint, the shape in current model is ", to_string(own.tensor.sizes()), ".");
    } else {
      copies.emplace_back(own.tensor, value);
    }
    given.erase(found);
  }
  for (const NamedTensor& item : state) {
    if (given.erase(item.name) != 0) difference.unexpected.push_back(item.name);
  }
  if (strict && !difference.unexpected.empty())
    problems = "\n\tUnexpected key(s) in state_dict: " + quoted(difference.unexpected) + ". " + problems;
  if (strict && !difference.missing.empty())
    problems = "\n\tMissing key(s) in state_dict: " + quoted(difference.missing) + ". " + problems;
  check(problems.empty(), "Error(s) in loading state_dict for ", kind_, ":", problems);
  const NoGradGuard without_grad;
  for (const auto& [to, from] : copies) ops::copy_(to, autograd::detach(from));
  return difference;
}

}  // namespace tensord::nn
