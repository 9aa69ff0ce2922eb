#include "core/jit/importers/pt2/graph_reader.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <span>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/ir/refusals.h"
#include "core/ops/registry.h"

namespace tensord::jit::pt2 {

using ops::TypeKind;
using ops::Value;

namespace {

constexpr size_t kMaxGraphDepth = 30;

constexpr std::string_view kOperators = "torch.ops.";

bool is_number_case(std::string_view name) {
  return name == "as_int" || name == "as_float" || name == "as_bool" || name == "as_sym_int" ||
         name == "as_sym_float" || name == "as_sym_bool" || name == "as_complex";
}

// Selects the overload for scalars: where Python's operators were traced, x + 1 is written as add.Tensor(x, 1) but
// means add.Scalar.
const ops::Op& overload_for_numbers(const ops::Op& op, const Json& inputs, const std::string& where) {
  std::set<std::string> numbers;
  for (const Json& input : inputs) {
    const std::string name = string_member(input, "name", where);
    const int index = op.schema.find_argument(name);
    if (index < 0 || op.schema.arguments[static_cast<size_t>(index)].type->kind() != TypeKind::kTensor) continue;
    if (is_number_case(union_case(member(input, "arg", where), where).name)) numbers.insert(name);
  }
  if (numbers.empty()) return op;
  const auto& wanted = op.schema.arguments;
  for (const ops::Op* candidate : ops::find_overloads(op.schema.name)) {
    const auto& formals = candidate->schema.arguments;
    bool fits = formals.size() >= wanted.size();
    for (size_t i = 0; fits && i < wanted.size(); ++i) {
      fits = numbers.contains(wanted[i].name) ? formals[i].type->kind() == TypeKind::kNumber
                                              : ops::same_type(formals[i].type, wanted[i].type);
    }
    // Further parameters of the candidate have defaults.
    if (fits && std::ranges::all_of(std::span(formals).subspan(wanted.size()),
                                    [](const ops::Argument& one) { return one.default_value.has_value(); })) {
      return *candidate;
    }
  }
  fail(ErrorCode::kUnimplemented, where, ": a number for argument '", *numbers.begin(), "' of ", op.schema.full_name(),
       " is not supported");
}

struct Targets {
  std::set<std::string> missing;
  bool has_writes = false;
};

void collect_targets(const Json& graph, const std::string& source, size_t depth, Targets& targets) {
  if (depth > kMaxGraphDepth)
    fail(ErrorCode::kResourceExhausted, source, ": graphs in graphs, more than ", kMaxGraphDepth);
  for (const Json& node : array_member(graph, "nodes", source)) {
    const std::string target = string_member(node, "target", source);
    const std::string name = operator_name(target);
    if (is_higher_order(target)) {
      for (const Json& input : array_member(node, "inputs", source)) {
        const Json* argument = find_member(input, "arg");
        const Json* body = argument ? find_member(*argument, "as_graph") : nullptr;
        if (body) collect_targets(member(*body, "graph", source), source, depth + 1, targets);
      }
    } else if (name.empty()) {
      if (!is_python_function(target)) targets.missing.insert(target);
    } else if (!find_composition(name)) {
      const ops::Op* op = ops::find_op(registry_name(name));
      if (!op) targets.missing.insert(name);
      targets.has_writes = targets.has_writes || (op && op->schema.is_mutating());
    }
  }
}

}  // namespace

std::string operator_name(const std::string& target) {
  if (!target.starts_with(kOperators)) return {};
  const size_t space = target.find('.', kOperators.size());
  if (space == std::string::npos) return {};
  const std::string domain = target.substr(kOperators.size(), space - kOperators.size());
  if (domain == "higher_order") return {};
  std::string rest = target.substr(space + 1);
  constexpr std::string_view kDefault = ".default";
  if (rest.ends_with(kDefault)) rest.resize(rest.size() - kDefault.size());
  return concat(domain, "::", rest);
}

void GraphReader::check_targets(const Json& graph) {
  Targets targets;
  collect_targets(graph, source_, 0, targets);
  writes_ = targets.has_writes;
  std::erase_if(targets.missing, [&](const std::string& name) {
    const bool is_collected = collect_refusal(concat(source_, ": operator ", name, " is not supported"));
    if (is_collected) missing_.insert(name);
    return is_collected;
  });
  if (targets.missing.empty()) return;
  std::string names;
  for (const std::string& name : targets.missing) names += concat(names.empty() ? "" : ", ", name);
  fail(ErrorCode::kUnimplemented, source_, ": the program calls operators that are not supported: ", names);
}

// The innermost stack frame outside of PyTorch: the model's own source.
void GraphReader::set_location(const Json& node) {
  const Json* notes = find_member(node, "metadata");
  const Json* trace = notes ? find_member(*notes, "stack_trace") : nullptr;
  SourceLocation location;
  if (trace && trace->is_string()) {
    const std::string& text = trace->get_ref<const std::string&>();
    constexpr std::string_view kFile = "File \"", kLine = "\", line ";
    for (size_t at = text.find(kFile); at != std::string::npos; at = text.find(kFile, at + 1)) {
      const size_t begin = at + kFile.size(), end = text.find(kLine, begin);
      if (end == std::string::npos) break;
      const std::string file = text.substr(begin, end - begin);
      if (location.line > 0 && file.find("/torch/") != std::string::npos) continue;
      int line = 0;
      std::from_chars(text.data() + end + kLine.size(), text.data() + text.size(), line);
      auto& shared = files_[file];
      if (!shared) shared = std::make_shared<const std::string>(file);
      location.file_name = shared;
      location.line = line;
    }
  }
  builder_.set_location(std::move(location));
}

void GraphReader::add_nodes(const Json& graph, Scope& scope) {
  if (++depth_ > kMaxGraphDepth) {
    fail(ErrorCode::kResourceExhausted, source_, ": graphs in graphs, more than ", kMaxGraphDepth);
  }
  for (const Json& node : array_member(graph, "nodes", source_)) {
    check_work_cancelled();
    add_node(node, scope);
  }
  if (depth_ == 1) check_none_refused();
  --depth_;
}

void GraphReader::add_node(const Json& node, Scope& scope) {
  const std::string target = string_member(node, "target", source_);
  set_location(node);
  try {
    if (reads_refused(node)) return refuse_outputs(node);
    if (is_higher_order(target)) return add_higher_order(*this, target, node, scope);
    if (operator_name(target).empty()) return add_function(target, node, scope);
    add_operator(target, node, scope);
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(source_)) throw;
    const Json* name = find_member(node, "name");
    const std::string message =
        concat(source_, ": node '", name && name->is_string() ? name->get<std::string>() : target, "': ", error.what());
    const bool is_known = missing_.contains(target) || missing_.contains(operator_name(target));
    if (!is_known && !collect_refusal(message)) throw Error(error.code(), message);
    refuse_outputs(node);
  }
}

namespace {

// Calls `visit` with each value name in an argument or result.
template <class Visit>
void for_each_value(const Json& json, const Visit& visit) {
  if (json.is_object()) {
    for (const auto& [key, inner] : json.items()) {
      if ((key == "name" || key == "as_name") && inner.is_string()) visit(inner.template get_ref<const std::string&>());
      for_each_value(inner, visit);
    }
  }
  if (json.is_array()) {
    for (const Json& inner : json) for_each_value(inner, visit);
  }
}

}  // namespace

bool GraphReader::reads_refused(const Json& node) const {
  if (refused_.empty()) return false;
  bool found = false;
  for (const Json& input : array_member(node, "inputs", source_)) {
    const Json* argument = find_member(input, "arg");
    if (argument) for_each_value(*argument, [&](const std::string& name) { found = found || refused_.contains(name); });
  }
  return found;
}

void GraphReader::refuse_outputs(const Json& node) {
  for_each_value(array_member(node, "outputs", source_), [&](const std::string& name) { refused_.insert(name); });
}

void GraphReader::add_operator(const std::string& target, const Json& node, Scope& scope) {
  const std::string name = operator_name(target);
  if (const Composition composition = find_composition(name)) {
    return name_outputs(node, composition(*this, node, scope), scope);
  }
  const Json& inputs = array_member(node, "inputs", target);
  // A view of a PyTorch result may be impossible here, because strides differ. If nothing is written, a copy is
  // equivalent.
  const bool is_view = name == "aten::view" || name == "aten::_unsafe_view";
  const std::string_view registered = is_view && !writes_ ? "aten::reshape" : registry_name(name);
  const ops::Op& wanted = ops::get_op(registered);
  if (GraphValue* swapped = number_first(wanted, inputs, scope)) {
    return name_outputs(node, std::span<GraphValue* const>(&swapped, 1), scope);
  }
  const ops::Op& op = overload_for_numbers(wanted, inputs, target);
  const Values values = bind(op, inputs, scope);
  const Node* made = builder_.call(op, values);
  name_outputs(node, made->outputs(), scope);
}

// 1 - x is written as sub.Tensor(1, x), but means rsub.Scalar(x, 1). Returns null for anything else.
GraphValue* GraphReader::number_first(const ops::Op& op, const Json& inputs, const Scope& scope) {
  struct Reversed {
    std::string_view op, reversed;
  };
  constexpr Reversed kReversed[] = {{"aten::sub.Tensor", "aten::rsub.Scalar"},
                                    {"aten::add.Tensor", "aten::add.Scalar"},
                                    {"aten::mul.Tensor", "aten::mul.Scalar"}};
  for (const auto& [name, reversed] : kReversed) {
    if (op.schema.full_name() != name || inputs.size() != 2) continue;
    const Json& left = member(inputs[0], "arg", op.schema.name);
    const Json& right = member(inputs[1], "arg", op.schema.name);
    if (!is_number_case(union_case(left, op.schema.name).name) || union_case(right, op.schema.name).name != "as_tensor")
      continue;
    return builder_.op(reversed, {argument(right, scope), argument(left, scope)});
  }
  return nullptr;
}

GraphReader::Values GraphReader::bind(const ops::Op& op, const Json& inputs, const Scope& scope) {
  const auto& formals = op.schema.arguments;
  Values values(formals.size(), nullptr);
  size_t position = 0;
  for (const Json& input : inputs) {
    const std::string name = string_member(input, "name", op.schema.name);
    const Json& given = member(input, "arg", op.schema.name);
    int index = op.schema.find_argument(name);
    // Overloads for scalars may name the parameter differently, so it is matched by position.
    if (index < 0 && position < formals.size() && !formals[position].is_keyword_only && !values[position]) {
      index = static_cast<int>(position);
    }
    ++position;
    if (index < 0) {
      const Case one = union_case(given, name);
      const bool says_nothing = one.name == "as_none" || (one.name == "as_bool" && one.value == false);
      if (says_nothing) continue;
      fail(ErrorCode::kUnimplemented, op.schema.full_name(), ": argument '", name, "' is not supported");
    }
    GraphValue*& value = values[static_cast<size_t>(index)];
    if (value) fail(ErrorCode::kDataLoss, op.schema.full_name(), ": argument '", name, "' is given twice");
    value = argument(given, scope, &formals[static_cast<size_t>(index)]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]) continue;
    if (!formals[i].default_value) {
      fail(ErrorCode::kDataLoss, op.schema.full_name(), ": argument '", formals[i].name, "' is missing");
    }
    const Value& value = *formals[i].default_value;
    values[i] = constant_for(&formals[i], value);
  }
  return values;
}

void GraphReader::add_function(const std::string& target, const Json& node, Scope& scope) {
  Values values;
  for (const Json& input : array_member(node, "inputs", target)) {
    values.push_back(argument(member(input, "arg", target), scope));
  }
  GraphValue* result = python_call(builder_, target, values);
  name_outputs(node, std::span<GraphValue* const>(&result, 1), scope);
}

void GraphReader::name_outputs(const Json& node, std::span<GraphValue* const> results, Scope& scope) {
  const Json& outputs = array_member(node, "outputs", "node");
  if (outputs.size() > results.size()) {
    fail(ErrorCode::kDataLoss, "has ", outputs.size(), " results, but gives ", results.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Null results are read by no program.
    if (results[i]) name_output(outputs[i], results[i], scope);
  }
}

void GraphReader::name_output(const Json& output, GraphValue* result, Scope& scope) {
  const auto define = [&](const std::string& name, GraphValue* value) {
    value->set_name(name);
    if (!scope.emplace(name, value).second) fail(ErrorCode::kDataLoss, "'", name, "' is defined twice");
  };
  const auto [kind, value] = union_case(output, "result");
  if (kind == "as_none") return;
  if (kind == "as_tensor") return define(string_member(value, "name", "result"), result);
  if (kind == "as_sym_int")
    return define(string_member(value, "as_name", "result"), as_number(result, ops::int_type()));
  if (kind == "as_sym_float") {
    return define(string_member(value, "as_name", "result"), as_number(result, ops::float_type()));
  }
  if (kind == "as_sym_bool")
    return define(string_member(value, "as_name", "result"), as_number(result, ops::bool_type()));
  if (kind == "as_tensors" && value.is_array() && result->type()->kind() == TypeKind::kList) {
    Node* unpack = builder_.add(NodeKind::kListUnpack, std::span<GraphValue* const>(&result, 1));
    for (const Json& item : value)
      define(string_member(item, "name", "result"), unpack->add_output(ops::tensor_type()));
    return;
  }
  fail(ErrorCode::kUnimplemented, "a result of kind ", kind, " is not supported");
}

GraphValue* GraphReader::as_number(GraphValue* value, const ops::TypePtr& type) {
  if (ops::same_type(value->type(), type)) return value;
  const char* name = type->kind() == TypeKind::kInt     ? "aten::Int"
                     : type->kind() == TypeKind::kFloat ? "aten::Float"
                                                        : "aten::Bool";
  return builder_.scalar_op(name, {value});
}

}  // namespace tensord::jit::pt2
