#include "core/autograd/op_node.h"

#include <algorithm>

#include "core/autograd/differentiable.h"
#include "core/autograd/meta.h"
#include "core/autograd/recorder.h"
#include "core/autograd/saved.h"
#include "core/autograd/variable.h"
#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"

namespace tensord::autograd {
namespace {

using ops::List;
using ops::Value;

bool is_bit(uint64_t bits, size_t i) { return bits >> i & 1; }

// Lists are mutable: a list with other holders is copied.
Value keep_value(const Value& value) {
  if (!value.is_list() || value.to_list()->use_count() == 1) return value;
  return ops::make_list(value.to_list()->element, value.to_list()->items);
}

// A copy with the history of the original, which is about to be overwritten.
Tensor copy_before_write(const Tensor& tensor) {
  static const ops::Op& op = ops::get_op("aten::clone");
  std::vector<Value> returns;
  const Value arguments[] = {tensor, Value()};
  ops::run_below(Functionality::kADInplaceOrView, op, arguments, returns);
  Tensor copy = returns.front().to_tensor();
  if (NodePtr node = grad_fn(tensor)) set_history(copy, std::move(node), output_nr(tensor));
  return copy;
}

Edge edge_of(const Value& value) { return value.is_tensor() ? gradient_edge(value.to_tensor()) : Edge(); }

}  // namespace

bool is_tensor_list(const Value& value) {
  return value.is_list() && value.to_list()->element->kind() == ops::TypeKind::kTensor;
}

Value OpNode::keep(const Tensor& tensor, size_t argument, size_t item, bool is_written) {
  if (!is_bit(saved_inputs_, argument)) return shape_of(tensor);
  check_savable(tensor);
  const bool is_target = is_written && target_ && argument == info_.target;
  // A tensor over the written memory would own this node through its history, and fails its version check anyway.
  const bool is_over_target = tensor.storage().get() == target_;
  const Tensor kept = is_target ? copy_before_write(tensor) : is_over_target ? detach(tensor) : tensor;
  // What the operator itself writes, such as running statistics, no gradient reads as it was.
  if (hooks_are_set() && !kept.is_meta() && (!is_written || is_target)) return pack(kept, argument, false, item);
  keeps_elements_ |= !kept.is_meta();
  if (!is_written) {  // no other code writes a copy
    versions_.push_back({static_cast<uint8_t>(argument), false, static_cast<uint32_t>(item), kept.version()});
  }
  return kept;
}

Value OpNode::pack(const Tensor& tensor, size_t argument, bool is_output, size_t item) {
  keeps_elements_ = true;
  if (!packed_) packed_ = std::make_unique<std::vector<Packed>>();
  packed_->push_back({argument, is_output, item, PackedTensor(tensor)});
  return shape_of(tensor);
}

void OpNode::unpack_into(std::vector<Value>& inputs, std::vector<Value>& outputs) const {
  for (const Packed& packed : *packed_) {
    Value& place = packed.is_output ? outputs[packed.argument] : inputs[packed.argument];
    const Tensor tensor = packed.tensor.unpack(is_grad_enabled());
    if (!place.is_list()) {
      place = tensor;
      continue;
    }
    std::vector<Value> items = place.to_list()->items;
    items[packed.item] = tensor;
    place = ops::make_list(place.to_list()->element, std::move(items));
  }
}

Value OpNode::keep_list(const Value& list, size_t argument) {
  const auto& items = list.to_list()->items;
  std::vector<Value> kept;
  kept.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    add_edge(edge_of(items[i]));
    kept.push_back(items[i].is_tensor() ? keep(items[i].to_tensor(), argument, i, false) : Value());
  }
  return ops::make_list(list.to_list()->element, std::move(kept));
}

void OpNode::save_inputs(std::span<const Value> arguments, uint64_t requiring, uint64_t written) {
  if (info_.saved_for.empty()) {
    saved_inputs_ = info_.gradient_op->saved_inputs;
    saved_outputs_ = info_.gradient_op->saved_outputs;
  } else {
    for (const uint8_t i : info_.tensors) {
      if (!is_bit(requiring, i)) continue;
      saved_inputs_ |= info_.saved_for[i].inputs;
      saved_outputs_ |= info_.saved_for[i].outputs;
    }
  }
  const bool has_gradient = static_cast<bool>(info_.gradient_op->gradient);
  target_ = info_.role == OpInfo::Role::kWrite ? arguments[info_.target].to_tensor().storage().get() : nullptr;
  inputs_.reserve(arguments.size());
  size_t next = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = arguments[i];
    if (next == info_.tensors.size() || info_.tensors[next] != i) {
      inputs_.push_back(keep_value(value));
      continue;
    }
    ++next;
    if (value.is_list()) {
      inputs_.push_back(keep_list(value, i));
      continue;
    }
    add_edge(edge_of(value));
    inputs_.push_back(value.is_tensor() && has_gradient ? keep(value.to_tensor(), i, 0, is_bit(written, i)) : Value());
  }
}

Value OpNode::keep_output(const Tensor& tensor, size_t output, size_t item, uint32_t result) {
  if (!is_bit(saved_outputs_, output)) {
    return results_[result].defined() ? results_[result] : shape_of(tensor);
  }
  if (hooks_are_set()) return pack(detach(tensor), output, true, item);
  keeps_elements_ = true;
  versions_.push_back({static_cast<uint8_t>(output), true, static_cast<uint32_t>(item), tensor.version()});
  return detach(tensor);
}

void OpNode::save_outputs(std::span<const Value> returns) {
  if (!info_.gradient_op->gradient) return;
  outputs_.reserve(returns.size());
  uint32_t result = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    const Value& value = returns[i];
    if (value.is_tensor()) {
      outputs_.push_back(keep_output(value.to_tensor(), i, 0, result++));
    } else if (is_tensor_list(value)) {
      std::vector<Value> kept;
      const auto& items = value.to_list()->items;
      for (size_t k = 0; k < items.size(); ++k, ++result) {
        kept.push_back(items[k].is_tensor() ? keep_output(items[k].to_tensor(), i, k, result) : items[k]);
      }
      outputs_.push_back(ops::make_list(value.to_list()->element, std::move(kept)));
    } else {
      result += value.is_none() ? 1 : 0;
      outputs_.push_back(keep_value(value));
    }
  }
}

void OpNode::check_versions() const {
  if (is_released_) fail_released();
  for (const Version& saved : versions_) {
    const Value& value = saved.is_output ? outputs_[saved.argument] : inputs_[saved.argument];
    const Tensor& tensor = value.is_list() ? value.to_list()->items[saved.item].to_tensor() : value.to_tensor();
    if (tensor.version() == saved.version) [[likely]]
      continue;
    if (saved.is_output) {
      check_version(tensor, saved.version, this, saved.item + saved.argument);
    } else {
      const NodePtr node = grad_fn(tensor);
      check_version(tensor, saved.version, node.get(), output_nr(tensor));
    }
  }
}

uint64_t OpNode::needed_arguments() const {
  uint64_t needed = 0;
  size_t edge = 0;
  for (const uint8_t i : info_.tensors) {
    const size_t count = inputs_[i].is_list() ? inputs_[i].to_list()->items.size() : 1;
    for (size_t k = 0; k < count; ++k, ++edge) {
      if (next_edges_[edge] && needs_edge(edge)) needed |= uint64_t{1} << i;
    }
  }
  return needed;
}

std::vector<Value> OpNode::outputs_with_history(std::span<const Value> outputs) const {
  uint32_t result = 0;
  const auto with_history = [&](const Value& value) -> Value {
    const uint32_t number = result++;
    if (!value.is_tensor() || value.to_tensor().is_meta()) return value;
    Tensor out = detach(value.to_tensor());
    if (is_differentiable(out.dtype())) set_history(out, history(), number);  // a part has one result
    return out;
  };
  std::vector<Value> out;
  for (const Value& value : outputs) {
    if (is_tensor_list(value)) {
      std::vector<Value> items;
      for (const Value& item : value.to_list()->items) items.push_back(with_history(item));
      out.push_back(ops::make_list(value.to_list()->element, std::move(items)));
    } else {
      out.push_back(value.is_tensor() || value.is_none() ? with_history(value) : value);
    }
  }
  return out;
}

std::vector<Tensor> OpNode::by_edge(std::vector<Value> gradients) const {
  gradients.resize(inputs_.size());  // gradients of the last arguments may be missing
  std::vector<Tensor> out(next_edges_.size());
  size_t edge = 0;
  for (const uint8_t i : info_.tensors) {
    const size_t count = inputs_[i].is_list() ? inputs_[i].to_list()->items.size() : 1;
    if (gradients[i].is_list()) {
      const auto& items = gradients[i].to_list()->items;
      check_internal(items.size() == count, "a gradient function gave ", items.size(), " for a list of ", count);
      for (size_t k = 0; k < count; ++k) {
        if (items[k].is_tensor()) out[edge + k] = items[k].to_tensor();
      }
    } else if (gradients[i].is_tensor()) {
      check_internal(!inputs_[i].is_list(), info_.node_name, " returned one gradient for a list");
      out[edge] = gradients[i].to_tensor();
    }
    edge += count;
  }
  return out;
}

std::vector<Tensor> OpNode::apply(std::vector<Tensor> gradients) {
  if (std::none_of(gradients.begin(), gradients.end(), [](const Tensor& gradient) { return gradient.defined(); })) {
    return std::vector<Tensor>(next_edges_.size());
  }
  const ops::Op& op = *info_.gradient_op;
  if (!op.gradient) fail(ErrorCode::kUnimplemented, "derivative for ", op.schema.full_name(), " is not implemented");
  check_versions();
  const uint64_t needed = needed_arguments();
  std::vector<Value> unpacked_inputs, unpacked_outputs;
  if (packed_) {
    unpacked_inputs.assign(inputs_.begin(), inputs_.end());
    unpacked_outputs.assign(outputs_.begin(), outputs_.end());
    unpack_into(unpacked_inputs, unpacked_outputs);
  }
  const std::span<const Value> inputs = packed_ ? std::span<const Value>(unpacked_inputs) : inputs_;
  const std::span<const Value> outputs = packed_ ? std::span<const Value>(unpacked_outputs) : outputs_;
  const bool is_complex = ops::has_complex(inputs) || ops::has_complex(outputs);  // gradients have the outputs' dtypes
  const auto gradient_of = [&](const ops::GradArgs& args) {
    return is_complex ? ops::complex_gradient(op, args) : op.gradient(args);
  };
  if (is_grad_enabled()) {
    const std::vector<Value> recorded = outputs_with_history(outputs);
    return by_edge(gradient_of({inputs, recorded, gradients, needed}));
  }
  const BelowAutogradScope below;
  return by_edge(gradient_of({inputs, outputs, gradients, needed}));
}

void OpNode::release_saved() {
  if (!keeps_elements_) return;  // only shapes were kept
  is_released_ = true;
  inputs_.clear();
  outputs_.clear();
  versions_.clear();
  packed_.reset();
}

}  // namespace tensord::autograd
