#include "core/jit/importers/onnx/load_checks.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {

namespace {

// Sizes that a request chooses are all this, which can be divided and is large, or different and without divisors.
constexpr int64_t kLarge = 960;
constexpr int64_t kPrimes[] = {101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179};
constexpr size_t kChoices = 2;

bool is_one(const std::vector<const std::vector<Known>*>& all) {
  return std::ranges::all_of(all, [](const std::vector<Known>* choices) { return choices->size() == 1; });
}

const Known& of_choice(const std::vector<Known>& choices, size_t i) { return choices[choices.size() == 1 ? 0 : i]; }

}  // namespace

int64_t LoadChecks::size_of(const std::string& name, size_t choice) {
  if (choice == 0) return kLarge;
  const auto number = numbers_.emplace(name, static_cast<int64_t>(numbers_.size())).first->second;
  return kPrimes[static_cast<size_t>(number) % std::size(kPrimes)];
}

LoadChecks::Choices LoadChecks::choices_of(const TypeProto& type, const std::string& name, bool takes_sizes) {
  const std::optional<DType> dtype = find_dtype(type.elem_type);
  if (type.kind != TypeProto::Kind::kTensor || !type.shape || !dtype) return {{std::nullopt, true}};
  bool is_static = true;
  Choices choices;
  for (size_t choice = 0; choice < kChoices; ++choice) {
    Dims sizes;
    for (size_t i = 0; i < type.shape->size(); ++i) {
      const TypeProto::Dimension& dimension = (*type.shape)[i];
      const int64_t size = takes_sizes ? dimension.value.value_or(-1) : -1;
      is_static = is_static && size >= 0;
      const bool has_name = takes_sizes && !dimension.parameter.empty();
      sizes.push_back(size >= 0 ? size : size_of(has_name ? dimension.parameter : concat(name, "\n", i), choice));
    }
    choices.push_back({ops::Value(Tensor::meta(sizes, *dtype))});
    if (is_static) break;
  }
  return choices;
}

void LoadChecks::declare(const GraphValue* value, const TypeProto& type) {
  known_[value] = choices_of(type, value->name(), /*takes_sizes=*/true);
}

void LoadChecks::declare_rank(const GraphValue* value, const TypeProto& type) {
  const Choices& now = known(value);
  if (std::ranges::any_of(now, [](const Known& each) { return each.value || each.items; })) return;
  if (value->type()->kind() != ops::TypeKind::kTensor) return;
  known_[value] = choices_of(type, value->name(), /*takes_sizes=*/false);
}

std::vector<Tensor> LoadChecks::tensors(const GraphValue* value) {
  std::vector<Tensor> all;
  for (const Known& each : known(value)) {
    if (!each.value || !each.value->is_strided() || !each.value->to_tensor().defined()) return {};
    all.push_back(each.value->to_tensor());
  }
  return all;
}

void LoadChecks::set_shape(const GraphValue* value, const Dims& sizes, DType dtype) {
  if (value->type()->kind() != ops::TypeKind::kTensor || !tensors(value).empty()) return;
  Choices choices;
  for (size_t choice = 0; choice < kChoices; ++choice) {
    Dims chosen;
    for (size_t i = 0; i < sizes.size(); ++i)
      chosen.push_back(sizes[i] >= 0 ? sizes[i] : size_of(concat("\n", value->id(), "\n", i), choice));
    choices.push_back({ops::Value(Tensor::meta(chosen, dtype))});
  }
  known_[value] = std::move(choices);
}

std::optional<int64_t> LoadChecks::rank(const GraphValue* value) {
  const std::vector<Tensor> all = tensors(value);
  const bool is_one = !all.empty() && std::ranges::all_of(all, [&](const Tensor& tensor) {
    return tensor.ndim() == all.front().ndim();
  });
  return is_one ? std::optional<int64_t>(all.front().ndim()) : std::nullopt;
}

Dims LoadChecks::sizes(const GraphValue* value) {
  if (!rank(value)) return {};
  const std::vector<Tensor> all = tensors(value);
  Dims sizes = all.front().sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (all.back().sizes()[i] != sizes[i]) sizes[i] = -1;
  }
  return sizes;
}

std::optional<DType> LoadChecks::dtype(const GraphValue* value) {
  const std::vector<Tensor> all = tensors(value);
  const bool is_one = !all.empty() && std::ranges::all_of(all, [&](const Tensor& tensor) {
    return tensor.dtype() == all.front().dtype();
  });
  return is_one ? std::optional(all.front().dtype()) : std::nullopt;
}

std::optional<int64_t> LoadChecks::length(const GraphValue* value) {
  const std::vector<Tensor> all = tensors(value);
  const bool is_one = !all.empty() && std::ranges::all_of(all, [&](const Tensor& tensor) {
    return tensor.ndim() == 1 && tensor.numel() == all.front().numel();
  });
  return is_one ? std::optional(all.front().numel()) : std::nullopt;
}

bool LoadChecks::has_one_shape(const GraphValue* value) { return tensors(value).size() == 1; }

void LoadChecks::set_one_of(const GraphValue* value, const GraphValue* a, const GraphValue* b) {
  const std::vector<Tensor> first = tensors(a), second = tensors(b);
  if (first.empty() || second.empty() || !rank(a) || rank(a) != rank(b) || !dtype(a) || dtype(a) != dtype(b)) return;
  const auto shape = [](const Tensor& tensor) { return ops::Value(Tensor::meta(tensor.sizes(), tensor.dtype())); };
  known_[value] = {{shape(first.front())}, {shape(second.back())}};
}

void LoadChecks::set(const GraphValue* value, const GraphValue* other) {
  if (other) {
    Choices same = known(other);
    known_[value] = std::move(same);
  } else {
    known_[value] = {{std::nullopt, true}};
  }
}

void LoadChecks::set_item(const GraphValue* value, const GraphValue* of, int64_t axis) {
  const std::vector<Tensor> all = tensors(of);
  const int64_t rank = this->rank(of).value_or(0);
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank || !tensors(value).empty()) return;
  Choices choices;
  for (const Tensor& tensor : all) {
    Dims sizes = tensor.sizes();
    sizes.erase(static_cast<size_t>(at));
    choices.push_back({ops::Value(Tensor::meta(sizes, tensor.dtype()))});
  }
  known_[value] = std::move(choices);
}

void LoadChecks::set_state(const GraphValue* state, const GraphValue* carried, bool is_first) {
  if (!is_first) {
    if (rank(carried) && dtype(carried))
      set_shape(state, Dims(static_cast<size_t>(*rank(carried)), -1), *dtype(carried));
    return;
  }
  Choices choices = known(carried);
  for (Known& each : choices) {
    if (!each.value || !each.value->is_tensor() || !each.value->to_tensor().defined()) continue;
    const Tensor& tensor = each.value->to_tensor();  // its elements may be others in the next round
    each = {ops::Value(Tensor::meta(tensor.sizes(), tensor.dtype()))};
  }
  known_[state] = std::move(choices);
}

bool LoadChecks::keeps_state(const GraphValue* state, const GraphValue* after, bool is_first) {
  const std::vector<Tensor> before = tensors(state), then = tensors(after);
  if (before.empty()) {
    return std::ranges::none_of(known(state), [](const Known& each) { return each.value || each.items; });
  }
  if (!is_first) return rank(state) == rank(after) && dtype(state) == dtype(after);
  for (size_t i = 0; i < kChoices && !then.empty(); ++i) {
    const Tensor &one = before[std::min(i, before.size() - 1)], &other = then[std::min(i, then.size() - 1)];
    if (one.sizes() != other.sizes() || one.dtype() != other.dtype()) return false;
  }
  return !then.empty();
}

const LoadChecks::Choices& LoadChecks::known(const GraphValue* value) {
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  Choices choices = computed(value);
  return known_[value] = std::move(choices);
}

LoadChecks::Choices LoadChecks::computed(const GraphValue* value) {
  const Tensor tensor = tensor_of_(value);
  if (tensor.defined()) {
    const bool has_elements = !tensor.is_meta() && tensor.numel() <= kMaxKnownElements;
    return {{ops::Value(has_elements ? tensor : Tensor::meta(tensor.sizes(), tensor.dtype()))}};
  }
  if (const ops::Value* constant = value->constant()) return {{*constant}};
  const Node* node = value->node();
  const bool is_followed = node && node->blocks().empty() &&
                           (node->kind() == NodeKind::kListConstruct || node->kind() == NodeKind::kUncheckedCast ||
                            node->kind() == NodeKind::kTupleUnpack || node->kind() == NodeKind::kListUnpack ||
                            (node->kind() == NodeKind::kOp && node->is_pure_op()));
  if (is_followed) {
    for_each_output(*node);
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
  }
  return {{std::nullopt, value->type()->kind() != ops::TypeKind::kOptional}};
}

template <class Run>
std::string LoadChecks::run_choices(bool is_one, const Run& run) {
  std::vector<std::string> errors;
  const size_t count = is_one ? 1 : kChoices;
  for (size_t choice = 0; choice < count; ++choice) {
    try {
      run(choice);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss) throw;
      errors.emplace_back(error.what());
    }
  }
  const bool fails = errors.size() == count && std::ranges::count(errors, errors.front()) == std::ssize(errors);
  return fails ? errors.front() : std::string();
}

void LoadChecks::fail_here(const std::string& why) {
  if (branches_.empty()) fail(ErrorCode::kDataLoss, why);
  if (!branches_.back()) branches_.back() = why;
}

void LoadChecks::for_each_output(const Node& node) {
  std::vector<const Choices*> inputs;
  for (const GraphValue* input : node.inputs()) known(input);
  for (const GraphValue* input : node.inputs()) inputs.push_back(&known(input));
  std::vector<Choices> outputs(node.outputs().size());
  const size_t count = is_one(inputs) ? 1 : kChoices;
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].assign(count, {std::nullopt, node.output(i)->type()->kind() != ops::TypeKind::kOptional});
  }
  const std::string why = run_choices(count == 1, [&](size_t choice) {
    std::vector<Known> arguments;
    for (const Choices* input : inputs) arguments.push_back(of_choice(*input, choice));
    const std::vector<Known> results = walk_.node(node, std::move(arguments));
    for (size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
      if (results[i].value || results[i].items) outputs[i][choice] = results[i];
    }
  });
  for (size_t i = 0; i < outputs.size(); ++i) known_[node.output(i)] = std::move(outputs[i]);
  if (!why.empty()) fail_here(why);
}

// Whether the request's sizes may cause the failure: tries other sizes that occur in the call.
bool LoadChecks::others_help(const Function& function, const std::vector<const Choices*>& given,
                             const std::string& why) {
  constexpr size_t kMaxSizes = 32;
  const auto tensor_of = [&](size_t i, size_t choice) {
    const Known& known = of_choice(*given[i], choice);
    return known.value && known.value->is_strided() ? known.value->to_tensor() : Tensor();
  };
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor first = tensor_of(i, 0), second = tensor_of(i, 1);
    if (first.defined() != second.defined() || (first.defined() && first.ndim() != second.ndim())) return true;
  }
  const auto is_chosen = [&](size_t i, size_t dim) { return tensor_of(i, 0).size(dim) != tensor_of(i, 1).size(dim); };
  std::set<int64_t> sizes{1, 2, 3, 4};
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor tensor = tensor_of(i, 0);
    for (size_t dim = 0; tensor.defined() && dim < tensor.sizes().size(); ++dim) {
      if (!is_chosen(i, dim) && sizes.size() < kMaxSizes) sizes.insert(tensor.sizes()[dim]);
    }
    const Known& known = given[i]->front();
    if (known.value && known.value->is_int() && sizes.size() < kMaxSizes) sizes.insert(known.value->to_int());
  }
  // Calls it with `size(dim, rank)` for each chosen size.
  const auto helps = [&](const auto& size) {
    std::vector<Known> values;
    for (size_t i = 0; i < given.size(); ++i) {
      values.push_back(given[i]->front());
      const Tensor tensor = tensor_of(i, 0);
      if (given[i]->size() == 1 || !tensor.defined()) continue;
      Dims dims = tensor.sizes();
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        if (is_chosen(i, dim)) dims[dim] = size(dim, dims.size());
      }
      values.back() = {ops::Value(Tensor::meta(dims, tensor.dtype()))};
    }
    try {
      walk_.call(function, std::move(values));
      return true;
    } catch (const Error& error) {
      return error.what() != why;
    }
  };
  for (const int64_t each : sizes) {
    if (each > 0 && helps([&](size_t, size_t) { return each; })) return true;
  }
  // Uses the size of another tensor at the same position.
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor tensor = tensor_of(i, 0);
    if (!tensor.defined()) continue;
    const auto same = [&](size_t dim, size_t rank) {
      return rank == tensor.sizes().size() ? tensor.sizes()[dim] : int64_t{1};
    };
    if (helps(same)) return true;
  }
  return false;
}

void LoadChecks::call(const Function& function, std::span<GraphValue* const> arguments, const GraphValue* result) {
  std::vector<const Choices*> given;
  for (const GraphValue* argument : arguments) known(argument);
  for (const GraphValue* argument : arguments) given.push_back(&known(argument));
  if (!branches_.empty()) check_attributes(function, given);
  const size_t count = is_one(given) ? 1 : kChoices;
  Choices results(count, {std::nullopt, result->type()->kind() != ops::TypeKind::kOptional});
  const std::string why = run_choices(count == 1, [&](size_t choice) {
    std::vector<Known> values;
    for (const Choices* each : given) values.push_back(of_choice(*each, choice));
    Known found = walk_.call(function, std::move(values));
    if (found.value || found.items) results[choice] = std::move(found);
  });
  if (!why.empty() && (count == 1 || !others_help(function, given, why))) fail_here(why);
  known_.emplace(result, std::move(results));  // a result that is an argument is already known
}

// Errors caused by attributes alone do not depend on the run.
void LoadChecks::check_attributes(const Function& function, const std::vector<const Choices*>& given) {
  std::vector<Known> values;
  for (const Choices* each : given) {
    const Known& first = each->front();
    const bool is_tensor =
        !first.value || first.value->is_strided() ||
        (first.value->is_list() && first.value->to_list()->element->kind() == ops::TypeKind::kTensor);
    values.push_back(is_tensor ? Known{std::nullopt, true} : first);
  }
  walk_.call(function, std::move(values));
}

std::optional<int64_t> LoadChecks::number(const GraphValue* value) {
  std::optional<int64_t> number;
  for (const Known& each : known(value)) {
    if (!each.value || !(each.value->is_int() || each.value->is_bool())) return std::nullopt;
    const int64_t found = each.value->is_int() ? each.value->to_int() : int64_t{each.value->to_bool()};
    if (number && *number != found) return std::nullopt;
    number = found;
  }
  return number;
}

}  // namespace tensord::jit::onnx
