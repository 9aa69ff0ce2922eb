#include "core/jit/tracing/tracer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/ir/operator_search.h"
#include "core/jit/tracing/call.h"
#include "core/ops/run.h"

namespace tensord::jit::tracing {

using ops::Value;

namespace {

constexpr int64_t kMaxTrips = 100'000;

// Whether a branch does nothing but raise.
bool only_raises(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    const std::string_view name = node->op() ? std::string_view(node->op()->schema.name) : "";
    if (name == "prim::RaiseException" || name == "prim::InvalidInput") return true;
  }
  return false;
}

// Whether a branch only computes numbers, as `a and b` over sizes does.
bool is_arithmetic(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    const bool is_plain = node->kind() == NodeKind::kConstant || node->kind() == NodeKind::kIf || node->is_pure_op();
    if (!is_plain || !std::ranges::all_of(node->blocks(), [](const Block* inner) { return is_arithmetic(*inner); }))
      return false;
    for (const GraphValue* output : node->outputs()) {
      const ops::TypeKind kind = output->type()->kind();
      const bool is_number =
          kind == ops::TypeKind::kInt || kind == ops::TypeKind::kFloat || kind == ops::TypeKind::kBool;
      if (!is_number && node->kind() != NodeKind::kConstant) return false;
    }
  }
  return true;
}

bool is_reader_of_shapes(std::string_view name) {
  return name == "aten::size" || name == "aten::numel" || name == "aten::len" || name == "aten::stride" ||
         name == "aten::sym_size" || name == "aten::sym_numel" || name == "aten::storage_offset";
}

// Queries of a tensor's kind that depend neither on its sizes nor on its elements.
bool asks_for_kind(const ops::Op& op) {
  const std::string_view name = op.schema.name;
  if (name == "prim::shape" || name == "aten::is_nonzero" || name == "aten::is_same_size") return false;
  return name.starts_with("prim::is_") || name.starts_with("aten::is_") || name == "prim::device" ||
         name == "prim::dtype" || name == "prim::layout" || name == "prim::requires_grad" || name == "prim::ndim" ||
         name == "aten::dim" || name == "aten::get_device" || name == "prim::itemsize" || name == "aten::requires_grad";
}

// Operators that use only the dtype and sizes of their tensor, and whose results have constant elements.
bool is_maker(std::string_view name) {
  static constexpr std::string_view kNames[] = {"aten::new_zeros",  "aten::new_ones",  "aten::new_full",
                                                "aten::zeros_like", "aten::ones_like", "aten::full_like"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

bool holds_tensor(const Traced& value) {
  if (value.a.is_strided()) return true;
  return value.items && std::ranges::any_of(*value.items, holds_tensor);
}

}  // namespace

Traced wrap(const Value& a, const Value& b) {
  Traced out;
  out.a = a;
  out.b = b;
  if (a.is_strided() && b.is_strided() && a.to_tensor().defined() && b.to_tensor().defined() &&
      a.to_tensor().ndim() != b.to_tensor().ndim()) {
    fail(ErrorCode::kUnimplemented, "the number of dimensions of the result depends on a dynamic size");
  }
  const auto take_items = [&](const std::vector<Value>& first, const std::vector<Value>& second) {
    if (first.size() != second.size()) {
      fail(ErrorCode::kUnimplemented, "a list's length depends on a dynamic size, which exported files cannot express");
    }
    out.items = std::make_shared<std::vector<Traced>>();
    for (size_t i = 0; i < first.size(); ++i) out.items->push_back(wrap(first[i], second[i]));
  };
  if (a.is_list()) take_items(a.to_list()->items, b.to_list()->items);
  if (a.is_tuple()) take_items(a.to_tuple()->items, b.to_tuple()->items);
  if (a.is_dict()) {
    std::vector<Value> first, second;
    for (const auto& [key, value] : a.to_dict()->items()) first.insert(first.end(), {key, value});
    for (const auto& [key, value] : b.to_dict()->items()) second.insert(second.end(), {key, value});
    take_items(first, second);
  }
  return out;
}

Tracer::Tracer(Target& target, const ops::ObjectPtr& self, bool has_open_sizes, size_t probe_count)
    : target_(target), is_double_(has_open_sizes), dead_probes_(probe_count) {
  // Passes inline modules where they are used, so the path of attributes to a module is not in the graph.
  std::vector<std::pair<const ops::Object*, std::string>> waiting{{self.get(), ""}};
  while (!waiting.empty()) {
    const auto [object, path] = waiting.back();
    waiting.pop_back();
    if (!paths_.emplace(object, path).second) continue;
    const auto& attributes = object->type->attributes();
    for (size_t i = std::min(attributes.size(), object->slots.size()); i > 0; --i) {
      const Value& value = object->slots[i - 1];
      const std::string& name = attributes[i - 1].name;
      if (value.is_object()) waiting.emplace_back(value.to_object().get(), path + name + ".");
      if (value.is_strided()) {
        const bool is_parameter = std::ranges::count(object->type->parameter_names, name) > 0;
        const Tensor& tensor = value.to_tensor();
        if (attributes_.insert_or_assign(tensor.impl(), Attribute{path + name, is_parameter}).second)
          attribute_storages_[tensor.storage().get()].push_back(tensor.impl());
      }
    }
  }
}

void Tracer::refuse(const Node& node, const std::string& why) const {
  const std::string place = node.location().str();
  fail(ErrorCode::kUnimplemented, node.kind_name(), ": ", why, place.empty() ? "" : " (" + place + ")");
}

Value Tracer::to_value(const Traced& value, bool second) const {
  const Value& sample = second ? value.b : value.a;
  if (!value.items) return sample;
  std::vector<Value> items;
  for (const Traced& item : *value.items) items.push_back(to_value(item, second));
  return to_container(sample, std::move(items));
}

// A container of the same type as `sample` with these items.
Value Tracer::to_container(const Value& sample, std::vector<Value> items) {
  if (sample.is_list()) return ops::make_list(sample.to_list()->element, std::move(items));
  if (sample.is_tuple()) return make_intrusive<ops::TupleObject>(std::move(items), sample.to_tuple()->type);
  auto dict = make_intrusive<ops::DictObject>(sample.to_dict()->key, sample.to_dict()->value);
  for (size_t i = 0; i < items.size(); i += 2) dict->set(items[i], items[i + 1]);
  return dict;
}

bool Tracer::is_constant(const Tensor& a) const {
  const auto found = tensors_.find(a.impl());
  if (found != tensors_.end() && !found->second.is_fixed) return false;
  return !(a.storage() && written_storages_.contains(a.storage().get()));
}

bool Tracer::is_dynamic(const Traced& value) const {
  if (value.items) return std::ranges::any_of(*value.items, [&](const Traced& item) { return is_dynamic(item); });
  return value.a.is_strided() ? !is_constant(value.a.to_tensor()) : value.is_dynamic;
}

std::string Tracer::name_of(const Traced& traced) {
  if (!traced.name.empty()) return traced.name;
  const Tensor& tensor = traced.a.to_tensor();
  const auto found = tensors_.find(tensor.impl());
  const bool is_stale = found == tensors_.end() ? !is_constant(tensor) : found->second.is_stale;
  if (is_stale) {
    fail(ErrorCode::kUnimplemented,
         "a tensor is read after another one over the same memory was written in place, which ", format(),
         " cannot express");
  }
  if (found == tensors_.end()) {
    // A tensor of the model that was reached through a list, for example.
    if (const std::string weight = weight_name(tensor); !weight.empty()) return weight;
    std::string& name = constants_[tensor.impl()];
    if (name.empty()) {
      kept_.push_back(tensor);
      // A copy, because the program may write to the tensor later.
      name = target_.add_constant(traced.path.empty() ? "constant" : traced.path, tensor.clone());
    }
    return name;
  }
  if (found->second.name.empty()) {
    fail(ErrorCode::kUnimplemented, "this result of an operator cannot be exported to ", target_.format());
  }
  return found->second.name;
}

void Tracer::bind(Traced& tensor, const std::string& name) {
  const Tensor& a = tensor.a.to_tensor();
  kept_.push_back(a);
  Named& named = tensors_[a.impl()];
  named.name = name;
  named.is_stale = false;
  // Several operators may return the same tensor object, one of which makes a copy for other inputs.
  if (target_.shares_memory()) tensor.name = name;
}

void Tracer::mark_written(const Tensor& a, bool is_open) {
  if (is_open) written_storages_.insert(a.storage().get());
  if (target_.shares_memory()) return;
  for (const Tensor& other : kept_) {
    if (other.is_meta() || other.storage() != a.storage()) continue;
    if (!is_open) constants_.erase(other.impl());
    const auto found = tensors_.find(other.impl());
    if (found != tensors_.end() && other.impl() != a.impl()) found->second.is_stale = true;
  }
}

Traced Tracer::add_input(const std::string& name, const Tensor& a, const Tensor& b, const std::vector<Dims>& probes) {
  Traced input = wrap(a, b);
  bind(input, name);
  std::vector<std::optional<Value>> found;
  for (const Dims& sizes : probes) found.emplace_back(Tensor::meta(sizes, a.dtype(), a.device()));
  check_internal(found.size() == dead_probes_.size(), "an input has another number of probes");
  set_probes(input, found);
  return input;
}

Traced Tracer::run(const Block& block, std::vector<Traced> arguments) {
  check_internal(arguments.size() == block.inputs().size(), "a graph is run with other arguments than it has");
  for (size_t i = 0; i < arguments.size(); ++i) set(block.inputs()[i], std::move(arguments[i]));
  Traced result = run_block(block).at(0);
  write_attributes(result);
  return result;
}

std::vector<Traced> Tracer::run_block(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    try {
      visit(*node);
    } catch (const Error& error) {
      const std::string place = node->location().str();
      if (place.empty() || std::string_view(error.what()).find(place) != std::string_view::npos) throw;
      const bool names_it = std::string_view(error.what()).starts_with(node->kind_name());
      throw Error(error.code(), concat(names_it ? "" : node->kind_name() + ": ", error.what(), " (", place, ")"));
    }
  }
  std::vector<Traced> results;
  for (const GraphValue* output : block.outputs()) results.push_back(at(output));
  return results;
}

void Tracer::visit(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kOp: return call(node);
    case NodeKind::kConstant: return set(node.output(), wrap(node.constant(), node.constant()));
    case NodeKind::kIf: return run_if(node);
    case NodeKind::kLoop: return run_loop(node);
    case NodeKind::kGetAttr: return get_attribute(node);
    case NodeKind::kSetAttr: return set_attribute(node);
    case NodeKind::kListConstruct:
    case NodeKind::kTupleConstruct:
    case NodeKind::kDictConstruct: return construct(node);
    case NodeKind::kListUnpack:
    case NodeKind::kTupleUnpack:
    case NodeKind::kTupleIndex: return unpack(node);
    case NodeKind::kUncheckedCast: return set(node.output(), at(node.input()));
    case NodeKind::kUninitialized: return set(node.output(), Traced());
    case NodeKind::kIsInstance: {
      const Value value = to_value(at(node.input()), false);
      const bool is =
          std::ranges::any_of(node.types(), [&](const auto& type) { return ops::is_instance(value, *type); });
      return set(node.output(), wrap(is, is));
    }
    default: refuse(node, concat("cannot be exported to ", target_.format()));
  }
}

void Tracer::run_if(const Node& node) {
  const Traced& condition = at(node.input());
  const bool way = condition.a.to_bool();
  const Block& other = *node.blocks()[way ? 1 : 0];
  const bool is_choice = condition.is_dynamic && !node.outputs().empty() && is_arithmetic(*node.blocks()[0]) &&
                         is_arithmetic(*node.blocks()[1]);
  if (is_choice) return choose(node, Traced(condition));
  const bool has_two_ways = condition.is_dynamic && (way != condition.b.to_bool() || !only_raises(other));
  if (has_two_ways && !condition.number.empty()) return run_branchs(node, Traced(condition));
  if (has_two_ways) {
    refuse(node,
           "which branch is taken depends on a dynamic size or on data, and this is not the same for every input");
  }
  record_branch(node, condition, way, only_raises(other));
  const std::vector<Traced> results = run_block(*node.blocks()[way ? 0 : 1]);
  for (size_t i = 0; i < results.size(); ++i) set(node.output(i), results[i]);
}

// The result of a choice that does not depend on its unknown condition.
std::optional<Traced> Tracer::join_ways(const Traced& condition, const Traced& yes, const Traced& no) const {
  const auto is_fixed = [](const Traced& one, bool value) {
    return one.a.is_bool() && !one.is_dynamic && one.a.to_bool() == value;
  };
  if (is_fixed(yes, true) && is_fixed(no, false)) return condition;
  const auto is_same = [&](const Traced& one, const Traced& other) { return target_.is_same_number(one, other); };
  if (is_same(yes, no)) return no;
  // Such as "x if x == y else y".
  const auto& [x, y] = *condition.equality;
  const bool is_either = (is_same(yes, x) && is_same(no, y)) || (is_same(yes, y) && is_same(no, x));
  return is_either ? std::optional(no) : std::nullopt;
}

// Numbers that depend on a dynamic size. If the file cannot express them, they can only be used in conditions.
void Tracer::choose(const Node& node, const Traced& condition) {
  const auto run_branch = [&](bool way) { return run_block(*node.blocks()[way ? 0 : 1]); };
  const bool first_branch = condition.a.to_bool(), second_branch = condition.b.to_bool();
  const std::vector<Traced> first = run_branch(first_branch);
  const std::vector<Traced> second = first_branch == second_branch ? first : run_branch(second_branch);
  // The result of the other side, which may fail because it is not taken.
  std::optional<std::vector<Traced>> other;
  if (condition.equality && first_branch == second_branch) {
    const std::vector<bool> dead = dead_probes_;
    try {
      other = run_branch(!first_branch);
    } catch (const Error&) {
    }
    dead_probes_ = dead;
  }
  for (size_t i = 0; i < first.size(); ++i) {
    Traced result = wrap(first[i].a, second[i].b);
    result.is_dynamic = true;
    if (condition.equality && (other || first_branch != second_branch)) {
      const std::vector<Traced>& rest = other ? *other : second;
      const Traced &yes = first_branch ? first[i] : rest[i], &no = first_branch ? rest[i] : first[i];
      if (const std::optional<Traced> known = join_ways(condition, yes, no)) result = *known;
    }
    const auto taken = [&](bool way) -> const Traced* {
      if (way == first_branch) return &first[i];
      return first_branch != second_branch ? &second[i] : other ? &(*other)[i] : nullptr;
    };
    std::vector<std::optional<Value>> found;
    for (size_t set = 0; set < dead_probes_.size(); ++set) {
      const std::optional<Value> known = probe(condition, set);
      const Traced* way = known && known->is_bool() ? taken(known->to_bool()) : nullptr;
      found.push_back(way ? probe(*way, set) : std::nullopt);
    }
    set_probes(result, found);
    set(node.output(i), std::move(result));
  }
}

void Tracer::run_loop(const Node& node) {
  const Block& body = *node.blocks()[0];
  std::vector<Traced> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(at(node.input(i)));
  const Traced trips = at(node.input(0));
  Traced condition = at(node.input(1));
  if (trips.is_dynamic) refuse(node, "the number of iterations of a loop depends on a dynamic size or on data");
  for (int64_t i = 0;; ++i) {
    if (condition.is_dynamic) refuse(node, "the number of iterations of a loop depends on a dynamic size or on data");
    if (i >= trips.a.to_int() || !condition.a.to_bool()) break;
    if (i == kMaxTrips) refuse(node, concat("runs more than ", kMaxTrips, " times"));
    set(body.inputs()[0], wrap(i, i));
    for (size_t k = 0; k < carried.size(); ++k) set(body.inputs()[k + 1], carried[k]);
    std::vector<Traced> results = run_block(body);
    condition = results.front();
    carried.assign(results.begin() + 1, results.end());
  }
  for (size_t k = 0; k < carried.size(); ++k) set(node.output(k), carried[k]);
}

void Tracer::construct(const Node& node) {
  Traced made;
  made.items = std::make_shared<std::vector<Traced>>();
  for (const GraphValue* input : node.inputs()) made.items->push_back(at(input));
  const ops::TypePtr& type = node.output()->type();
  if (node.kind() == NodeKind::kListConstruct) made.a = ops::make_list(type->element());
  if (node.kind() == NodeKind::kDictConstruct)
    made.a = make_intrusive<ops::DictObject>(type->contained()[0], type->contained()[1]);
  if (node.kind() == NodeKind::kTupleConstruct)
    made.a = make_intrusive<ops::TupleObject>(std::vector<Value>(), type->field_names().empty() ? nullptr : type);
  made.b = made.a;
  set(node.output(), std::move(made));
}

void Tracer::unpack(const Node& node) {
  const std::vector<Traced>& items = *at(node.input()).items;
  if (node.kind() == NodeKind::kTupleIndex) {
    const int64_t index = node.index() < 0 ? node.index() + std::ssize(items) : node.index();
    const Traced item = items.at(static_cast<size_t>(index));
    return set(node.output(), item);
  }
  if (items.size() != node.outputs().size()) refuse(node, "has another length");
  const std::vector<Traced> copies = items;
  for (size_t i = 0; i < copies.size(); ++i) set(node.output(i), copies[i]);
}

// Tensors in the first set that a call writes to.
std::vector<Tensor> Tracer::written_tensors(const Node& node, const ops::Op& op,
                                            const std::vector<Traced>& arguments) const {
  std::vector<Tensor> written;
  if (op.writes_when >= 0 && arguments[static_cast<size_t>(op.writes_when)].a.is_bool() &&
      !arguments[static_cast<size_t>(op.writes_when)].a.to_bool()) {
    return written;
  }
  for (size_t i = 0; i < op.schema.arguments.size() && i < arguments.size(); ++i) {
    if (!op.schema.arguments[i].alias.is_write || !arguments[i].a.is_strided()) continue;
    if (!arguments[i].path.empty() && !target_.shares_memory())
      refuse(node, "writes to the model's own tensor '" + arguments[i].path + "'");
    written.push_back(arguments[i].a.to_tensor());
  }
  return written;
}

void Tracer::mark_results(std::vector<Traced>& results, const std::vector<Traced>& arguments, bool is_fixed) {
  const auto is_argument = [&](const Traced& one) {
    return std::ranges::any_of(arguments, [&](const Traced& argument) { return argument.a.is_same(one.a); });
  };
  // Results are not in the file unless the target names them.
  const auto mark = [&](Traced& one) {
    if (one.is_number()) one.is_dynamic = !is_fixed;
    // What came out of a list is known already, and what is given back as it came keeps its name.
    if (!one.a.is_strided() || tensors_.contains(one.a.to_tensor().impl()) || is_argument(one)) return;
    tensors_[one.a.to_tensor().impl()].is_fixed = is_fixed;
    bind(one, "");
  };
  for (Traced& result : results) {
    mark(result);
    if (result.items && !is_argument(result)) std::ranges::for_each(*result.items, mark);
  }
}

void Tracer::call(const Node& node) {
  const ops::Op& op = *node.op();
  const std::string_view name = op.base ? std::string_view(op.base->schema.name) : std::string_view(op.schema.name);
  std::vector<Traced> arguments;
  std::vector<Value> first, second;
  for (const GraphValue* input : node.inputs()) {
    arguments.push_back(at(input));
    first.push_back(to_value(at(input), false));
    if (is_double_) second.push_back(to_value(at(input), true));
  }
  const bool can_write = target_.can_write(op);
  if (op.is_random && !can_write) refuse(node, "draws random numbers");
  if (changes_shape(op) && !target_.shares_memory()) refuse(node, "gives a tensor another shape in place");
  const bool is_open = std::ranges::any_of(arguments, [&](const Traced& argument) { return is_dynamic(argument); });
  const std::vector<Tensor> written = written_tensors(node, op, arguments);
  check_writes(node, written, arguments, is_open);
  // Operators that modify lists work on the traced items; see containers.cpp.
  const bool has_container = !arguments.empty() && arguments[0].items;
  const bool changes_list = op.schema.is_mutating() && has_container;
  if (changes_list && !arguments[0].path.empty())
    refuse(node, concat("changes the model's own '", arguments[0].path, "'"));
  if (changes_list && outer_storages_) refuse(node, "changes a list in a branch that depends on data");
  std::vector<Traced> results;
  if (!changes_list) {
    const std::vector<Value> a = ops::run(op, first), b = is_double_ ? ops::run(op, second) : a;
    for (size_t i = 0; i < a.size(); ++i) results.push_back(wrap(a[i], b[i]));
  }
  ProbeResults found;
  if (is_open && !changes_list) {
    found = run_probes(op, arguments);
    set_probes(results, found);
  } else if (!changes_list) {
    for (Traced& result : results) set_fixed_probes(result);
  }
  for (const Tensor& tensor : written) mark_written(tensor, is_open);

  Call call(*this, node, op, std::move(arguments), std::move(results));
  const auto finish = [&] {
    for (size_t i = 0; i < node.outputs().size() && i < call.results().size(); ++i)
      set(node.output(i), call.results()[i]);
  };
  if (has_container && run_container_call(call)) return finish();
  if (changes_list) refuse(node, "changes a list in a way that is not known here");
  const bool gives_tensor = std::ranges::any_of(call.results(), holds_tensor);
  // Queries of types and ranks have the same result for every input.
  const bool asks = ((op.reads_only_shape && !is_reader_of_shapes(name)) || asks_for_kind(op)) && !gives_tensor;
  const auto is_dynamic_number = [&](const Traced& one) { return !one.a.is_strided() && is_dynamic(one); };
  const bool is_made = is_maker(name) && has_one_shape(call.results()[0]) &&
                       std::ranges::none_of(call.arguments(), is_dynamic_number) &&
                       (name != "aten::full_like" || !call.arguments()[1].a.is_strided());
  const bool is_fixed = !is_open || asks || is_made;
  const bool is_shared = target_.shares_memory() && gives_tensor;
  if (is_fixed && !is_shared) return finish();
  if (!can_write) {
    const auto is_in_file = [&](const Value& value) {
      return value.is_strided() && tensors_.contains(value.to_tensor().impl());
    };
    if (is_fixed && std::ranges::none_of(first, is_in_file)) return finish();
    if (call.results().empty() || gives_tensor) call.refuse_form();
    mark_results(call.results(), call.arguments(), is_fixed);
    return finish();
  }
  mark_results(call.results(), call.arguments(), is_fixed);
  target_.write(call);
  if (is_open) set_probes(call.results(), found);
  finish();
}

}  // namespace tensord::jit::tracing
