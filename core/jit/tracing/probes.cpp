// Infers results for other input sizes than the examples', through the operators' `infer` functions.
#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/jit/tracing/tracer.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"

namespace tensord::jit::tracing {

using ops::Value;

namespace {

// Small tensors keep their elements, because sizes are computed in them.
constexpr int64_t kMaxKnownElements = 64;

Value shape_of(const Tensor& tensor) {
  if (tensor.is_meta()) return tensor;
  return Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device());
}

// Calls `fn` for each tensor in a value.
template <class Fn>
void for_each_tensor(const Value& value, const Fn& fn) {
  if (value.is_strided()) fn(value.to_tensor());
  const auto each = [&](const std::vector<Value>& items) {
    for (const Value& item : items) for_each_tensor(item, fn);
  };
  if (value.is_list()) each(value.to_list()->items);
  if (value.is_tuple()) each(value.to_tuple()->items);
}

Value shapes_of(const Value& value) {
  if (value.is_strided()) return shape_of(value.to_tensor());
  if (!value.is_list()) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_list()->items) items.push_back(shapes_of(item));
  return ops::make_list(value.to_list()->element, std::move(items));
}

bool gives_tensors(const ops::Op& op) {
  return !op.schema.returns.empty() && std::ranges::all_of(op.schema.returns, [](const ops::Argument& one) {
    const ops::Type& type = *one.type;
    return (type.kind() == ops::TypeKind::kList ? type.element()->kind() : type.kind()) == ops::TypeKind::kTensor;
  });
}

bool are_small(std::span<const Value> values) {
  bool are = true;
  for (const Value& value : values) {
    for_each_tensor(value, [&](const Tensor& one) { are = are && one.defined() && one.numel() <= kMaxKnownElements; });
  }
  return are;
}

bool have_data(std::span<const Value> values) {
  bool have = true;
  for (const Value& value : values) {
    for_each_tensor(value, [&](const Tensor& one) { have = have && !(one.defined() && one.is_meta()); });
  }
  return have;
}

Value sizes_as_tensor(const Tensor& tensor) {
  const Tensor out = Tensor::empty(Dims{tensor.ndim()}, DType::kInt64);
  std::ranges::copy(tensor.sizes(), out.data<int64_t>());
  return out;
}

// The results of a call; nullopt if they depend on unknown elements. Throws the operator's errors.
std::optional<std::vector<Value>> results_of(const ops::Op& op, const std::vector<Value>& arguments) {
  if (op.schema.name == "aten::_shape_as_tensor") return std::vector<Value>{sizes_as_tensor(arguments[0].to_tensor())};
  std::vector<Value> shapes;
  for (const Value& argument : arguments) shapes.push_back(shapes_of(argument));
  const bool is_known = have_data(arguments) && are_small(arguments) && op.is_pure;
  if (!gives_tensors(op) && !op.is_view) {
    if (op.reads_only_shape) return ops::infer(op, shapes);
    return is_known ? std::optional(ops::run(op, arguments)) : std::nullopt;
  }
  if (op.has_dynamic_shape) return is_known ? std::optional(ops::run(op, arguments)) : std::nullopt;
  std::vector<Value> results = ops::infer(op, shapes);
  if (is_known && are_small(results)) return ops::run(op, arguments);
  for (Value& result : results) result = shapes_of(result);
  return results;
}

}  // namespace

std::optional<Value> Tracer::probe(const Traced& value, size_t set) const {
  if (!value.items) {
    if (!is_dynamic(value)) return value.a;
    if (!value.probes || set >= value.probes->size()) return std::nullopt;
    const std::optional<Value>& found = (*value.probes)[set];
    const bool is_lost = found && found->is_strided() && found->to_tensor().storage() &&
                         lost_storages_.contains(found->to_tensor().storage().get());
    return is_lost ? std::optional(shape_of(found->to_tensor())) : found;
  }
  std::vector<Value> items;
  for (const Traced& item : *value.items) {
    std::optional<Value> one = probe(item, set);
    if (!one) return std::nullopt;
    items.push_back(std::move(*one));
  }
  return to_container(value.a, std::move(items));
}

void Tracer::set_probes(Traced& result, const std::vector<std::optional<Value>>& found) const {
  if (!result.items) {
    for (size_t set = 0; set < found.size(); ++set) {
      if (!found[set] || dead_probes_[set] || !result.a.is_strided() || !found[set]->is_strided()) continue;
      if (found[set]->to_tensor().ndim() == result.a.to_tensor().ndim()) continue;
      fail(ErrorCode::kUnimplemented, "the number of dimensions of the result depends on a dynamic size");
    }
    result.probes = std::make_shared<const std::vector<std::optional<Value>>>(found);
    return;
  }
  if (result.a.is_dict()) return;
  for (size_t i = 0; i < result.items->size() || i == 0; ++i) {
    std::vector<std::optional<Value>> of_item;
    for (size_t set = 0; set < found.size(); ++set) {
      of_item.emplace_back();
      if (!found[set] || (!found[set]->is_list() && !found[set]->is_tuple())) continue;
      const std::vector<Value>& items =
          found[set]->is_list() ? found[set]->to_list()->items : found[set]->to_tuple()->items;
      if (items.size() == result.items->size()) {
        if (i < items.size()) of_item.back() = items[i];
      } else if (!dead_probes_[set]) {
        fail(ErrorCode::kUnimplemented,
             "a list's length depends on a dynamic size, which exported files cannot express");
      }
    }
    if (i < result.items->size()) set_probes((*result.items)[i], of_item);
  }
}

Tracer::ProbeResults Tracer::run_probes(const ops::Op& op, const std::vector<Traced>& arguments) {
  const NoGradGuard no_grad;
  ProbeResults found(dead_probes_.size());
  std::vector<size_t> failed;
  for (size_t set = 0; set < found.size(); ++set) {
    std::vector<Value> given;
    for (const Traced& argument : arguments) {
      std::optional<Value> one = dead_probes_[set] ? std::nullopt : probe(argument, set);
      if (!one) break;
      given.push_back(std::move(*one));
    }
    if (given.size() != arguments.size()) continue;
    if (op.schema.is_mutating()) {
      // Their elements are unknown from here on.
      for (const Value& value : given) {
        for_each_tensor(value, [&](const Tensor& one) {
          if (one.defined() && one.storage()) lost_storages_.insert(one.storage().get());
        });
      }
    }
    try {
      found[set] = results_of(op, given);
      if (found[set]) std::ranges::copy(*found[set], std::back_inserter(kept_probes_));
    } catch (const Error&) {
      failed.push_back(set);
    } catch (const std::bad_alloc&) {
      failed.push_back(set);
    }
  }
  // The program itself raises an error for these sizes.
  if (std::ranges::any_of(found, [](const auto& one) { return one.has_value(); })) {
    for (const size_t set : failed) dead_probes_[set] = true;
  }
  return found;
}

void Tracer::set_probes(std::vector<Traced>& results, const ProbeResults& found) const {
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<std::optional<Value>> of_result;
    for (const auto& set : found) of_result.push_back(set && i < set->size() ? std::optional((*set)[i]) : std::nullopt);
    const bool is_known = std::ranges::any_of(of_result, [](const auto& one) { return one.has_value(); });
    if (is_known || !results[i].probes) set_probes(results[i], of_result);
  }
}

// For a tensor whose shape is constant over all inputs.
void Tracer::set_fixed_probes(Traced& value) const {
  if (value.items) {
    for (Traced& item : *value.items) set_fixed_probes(item);
    return;
  }
  if (!value.a.is_strided() || !value.a.to_tensor().defined()) return;
  const std::vector<std::optional<Value>> all(dead_probes_.size(), shape_of(value.a.to_tensor()));
  value.probes = std::make_shared<const std::vector<std::optional<Value>>>(all);
}

void Tracer::record_branch(const Node& node, const Traced& condition, bool way, bool may_raise) {
  for (size_t set = 0; set < dead_probes_.size(); ++set) {
    const std::optional<Value> known = dead_probes_[set] ? std::nullopt : probe(condition, set);
    if (!known || !known->is_bool() || known->to_bool() == way) continue;
    if (!may_raise)
      refuse(node, "which branch is taken depends on a dynamic size, and this is not the same for every input");
    dead_probes_[set] = true;
  }
}

std::vector<std::optional<Tensor>> Tracer::probe_tensors(const Traced& tensor) const {
  std::vector<std::optional<Tensor>> out;
  for (size_t set = 0; set < dead_probes_.size(); ++set) {
    const std::optional<Value> one = dead_probes_[set] ? std::nullopt : probe(tensor, set);
    out.push_back(one && one->is_strided() ? std::optional(one->to_tensor()) : std::nullopt);
  }
  return out;
}

std::vector<std::optional<int64_t>> Tracer::probe_sizes(const Traced& tensor, int64_t dim) const {
  std::vector<std::optional<int64_t>> out;
  for (const std::optional<Tensor>& one : probe_tensors(tensor)) {
    out.push_back(one ? std::optional(one->size(dim)) : std::nullopt);
  }
  return out;
}

bool Tracer::is_open_size(const Traced& tensor, int64_t dim) const {
  const Tensor& a = tensor.a.to_tensor();
  if (is_double_ && a.size(dim) != tensor.b.to_tensor().size(dim)) return true;
  if (!is_dynamic(tensor)) return false;
  const std::vector<std::optional<int64_t>> sizes = probe_sizes(tensor, dim);
  bool is_known = false;
  for (size_t set = 0; set < sizes.size(); ++set) {
    if (dead_probes_[set]) continue;
    if (!sizes[set] || *sizes[set] != a.size(dim)) return true;
    is_known = true;
  }
  return !is_known;
}

bool Tracer::has_one_shape(const Traced& tensor) const {
  const Dims& sizes = tensor.a.to_tensor().sizes();
  if (is_double_ && tensor.b.to_tensor().sizes() != sizes) return false;
  bool is_known = !tensor.probes;
  for (size_t set = 0; tensor.probes && set < tensor.probes->size(); ++set) {
    const std::optional<Value>& one = (*tensor.probes)[set];
    if (dead_probes_[set]) continue;
    if (!one || !one->is_strided() || one->to_tensor().sizes() != sizes) return false;
    is_known = true;
  }
  return is_known;
}

Traced Tracer::size_of(const Traced& tensor, int64_t dim) const {
  const Tensor& a = tensor.a.to_tensor();
  Traced size = wrap(a.size(dim), is_double_ ? tensor.b.to_tensor().size(dim) : a.size(dim));
  size.is_dynamic = is_open_size(tensor, dim);
  std::vector<std::optional<Value>> found;
  for (const std::optional<int64_t>& one : probe_sizes(tensor, dim)) {
    found.push_back(one ? std::optional<Value>(*one) : std::nullopt);
  }
  set_probes(size, found);
  return size;
}

bool Tracer::has_open_sizes(const Traced& tensor) const {
  for (int64_t dim = 0; dim < tensor.a.to_tensor().ndim(); ++dim) {
    if (is_open_size(tensor, dim)) return true;
  }
  return false;
}

}  // namespace tensord::jit::tracing
