#include "core/jit/importers/pt2/program.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/jit/importers/pt2/enums.h"
#include "core/jit/importers/pt2/graph_reader.h"

namespace tensord::jit::pt2 {
namespace {

// Schema versions of PyTorch 2.5, and of 2.6 to 2.15; minor versions add fields.
constexpr int64_t kOldestSchema = 7, kNewestSchema = 8;

ops::Argument argument_of(std::string name, ops::TypePtr type) {
  ops::Argument argument;
  argument.name = std::move(name);
  argument.type = std::move(type);
  return argument;
}

std::string version_of(const Json& root) {
  const Json* version = find_member(root, "torch_version");
  return version && version->is_string() ? version->get<std::string>() : "2.4 or older";
}

}  // namespace

Program::Program(Json root, std::string source, std::string prefix)
    : root_(std::move(root)), source_(std::move(source)), prefix_(std::move(prefix)) {
  const Json& version = object_member(root_, "schema_version", source_);
  const int64_t major = int_member(version, "major", source_);
  if (major < kOldestSchema || major > kNewestSchema) {
    fail(ErrorCode::kUnimplemented, source_, ": is of schema version ", major, ".",
         int_member(version, "minor", source_), ", written by PyTorch ", version_of(root_),
         "; programs of PyTorch 2.5 and newer (schema versions ", kOldestSchema, " and ", kNewestSchema, ") are read");
  }
}

const Json& Program::specs(const char* name) const {
  const Json& signature = object_member(member(root_, "graph_module", source_), "signature", source_);
  return array_member(signature, name, source_);
}

NamedTuples Program::named_tuples() const {
  NamedTuples out;
  const Json* types = find_member(member(root_, "graph_module", source_), "treespec_namedtuple_fields");
  if (!types) return out;
  for (auto it = types->begin(); it != types->end(); ++it) {
    for (const Json& field : array_member(it.value(), "field_names", source_)) {
      out[it.key()].push_back(to_text(field, source_));
    }
  }
  return out;
}

const Json* Program::meta_of(const char* table, const std::string& name) const {
  const Json* values = find_member(graph(), table);
  return values ? find_member(*values, name.c_str()) : nullptr;
}

std::string Program::tensor_name(const Json& spec, const char* field) const {
  return prefix_ + string_member(spec, field, source_);
}

void Program::add_tensors(const std::map<std::string, Payload>& weights,
                          const std::map<std::string, Payload>& constants, ModuleTree& tree) const {
  const auto add = [&](const std::string& name, const std::map<std::string, Payload>& first,
                       const std::map<std::string, Payload>& second, ModuleTree::Kind kind) {
    if (tree.has(prefix_ + name)) return;
    auto found = first.find(name);
    if (found == first.end()) {
      found = second.find(name);
      if (found == second.end()) fail(ErrorCode::kDataLoss, source_, ": tensor '", name, "' is not in the file");
    }
    tree.add(prefix_ + name, found->second.tensor, kind);
  };
  for (const Json& spec : specs("input_specs")) {
    const auto [kind, value] = union_case(spec, concat(source_, ": input_specs"));
    if (kind == "parameter") {
      add(string_member(value, "parameter_name", source_), weights, constants, ModuleTree::Kind::kParameter);
    } else if (kind == "buffer") {
      // Non-persistent buffers are stored among the constants.
      const bool is_state = bool_member(value, "persistent", source_);
      add(string_member(value, "buffer_name", source_), is_state ? weights : constants, is_state ? constants : weights,
          is_state ? ModuleTree::Kind::kBuffer : ModuleTree::Kind::kConstant);
    } else if (kind == "tensor_constant") {
      add(string_member(value, "tensor_constant_name", source_), constants, weights, ModuleTree::Kind::kConstant);
    }
  }
}

namespace {

// "kv.0" for "kv_0", the file's name of an element of forward's *kv. "" for other names.
std::string variadic_name(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string::npos || end == 0 || end + 1 == name.size() || name[end] != '_') return {};
  return concat(name.substr(0, end), ".", name.substr(end + 1));
}

}  // namespace

// Uses the names of the model's forward if the file has them, otherwise those of the graph.
void Program::read_names() {
  const Json& calls = array_member(member(root_, "graph_module", source_), "module_call_graph", source_);
  const Json* call = nullptr;
  for (const Json& entry : calls) {
    if (string_member(entry, "fqn", source_).empty()) call = find_member(entry, "signature");
  }
  if (!call) fail(ErrorCode::kDataLoss, source_, ": module_call_graph: the program's own entry is missing");
  const NamedTuples tuples = named_tuples();
  const Pytree given = parse_pytree(string_member(*call, "in_spec", source_), tuples, concat(source_, ": in_spec"));
  outputs_ = parse_pytree(string_member(*call, "out_spec", source_), tuples, concat(source_, ": out_spec"));
  output_names_ = leaf_names(outputs_, "");
  if (given.children.size() != 2 || given.children[1].names.size() != given.children[1].children.size()) {
    fail(ErrorCode::kDataLoss, source_, ": in_spec: expected arguments and keyword arguments");
  }
  const Json* arguments = find_member(*call, "forward_arg_names");
  const auto append = [](std::vector<std::string>& all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (size_t i = 0; i < given.children[0].children.size(); ++i) {
    const Pytree& tree = given.children[0].children[i];
    const bool is_known = arguments && arguments->is_array() && i < arguments->size();
    append(input_names_, is_known ? leaf_names(tree, to_text((*arguments)[i], source_))
                                  : std::vector<std::string>(tree.leaf_count()));
    append(input_paths_, leaf_names(tree, concat("args.", i)));
    const std::string variadic = is_known ? variadic_name(to_text((*arguments)[i], source_)) : std::string();
    append(variadic_paths_,
           variadic.empty() ? std::vector<std::string>(tree.leaf_count()) : leaf_names(tree, variadic));
  }
  for (size_t i = 0; i < given.children[1].children.size(); ++i) {
    append(input_names_, leaf_names(given.children[1].children[i], given.children[1].names[i]));
    append(input_paths_, leaf_names(given.children[1].children[i], concat("kwargs.", given.children[1].names[i])));
  }
}

TensorSignature Program::describe(const std::string& name, const Json& argument) const {
  TensorSignature out;
  out.name = name;
  const auto [kind, value] = union_case(argument, source_);
  if (kind != "as_tensor") return out;
  const std::string tensor = string_member(value, "name", source_);
  const Json* meta = meta_of("tensor_values", tensor);
  if (!meta) fail(ErrorCode::kDataLoss, source_, ": tensor_values has no '", tensor, "'");
  out.dtype = to_dtype(int_member(*meta, "dtype", source_), concat(source_, ": '", tensor, "'"));
  out.shape.emplace();
  for (const Json& size : array_member(*meta, "sizes", source_)) {
    const auto [size_kind, number] = union_case(size, source_);
    out.shape->push_back(size_kind == "as_int" ? to_int(number, source_) : -1);
    out.size_names.push_back(size_kind == "as_int" ? "" : string_member(number, "expr_str", source_));
  }
  return out;
}

void Program::add_user_input(const Json& argument, Function& function, GraphBuilder& builder, Scope& scope) {
  const size_t leaf = inputs_.size();
  const auto [kind, value] = union_case(argument, concat(source_, ": input_specs"));
  ProgramInput input;
  ops::TypePtr type;
  std::string name;
  if (kind == "as_tensor") {
    name = string_member(value, "name", source_);
    type = ops::tensor_type();
    input.meta = meta_of("tensor_values", name);
    if (!input.meta) fail(ErrorCode::kDataLoss, source_, ": tensor_values has no '", name, "'");
  } else if (kind == "as_sym_int") {
    name = string_member(value, "as_name", source_);
    type = ops::int_type();
    input.symbol = meta_of("sym_int_values", name);
  } else if (kind == "as_custom_obj") {
    fail(ErrorCode::kUnimplemented, source_, ": the program takes a custom object, which is not supported");
  } else {
    // A constant for which the program was exported; requests do not provide it.
    GraphReader reader(builder, source_, false);
    input.value = reader.argument(argument, {});
  }
  input.name = leaf < input_names_.size() ? input_names_[leaf] : std::string();
  const auto is_taken = [&](const std::string& hint) {
    return std::ranges::any_of(inputs_, [&](const ProgramInput& other) { return other.name == hint; });
  };
  if (input.name.empty() || is_taken(input.name)) input.name = name.empty() ? concat("constant.", leaf) : name;
  for (size_t i = 1; is_taken(input.name); ++i) input.name = concat(name, "_", i);
  if (leaf < input_paths_.size()) input.paths = {input_paths_[leaf]};
  if (leaf < variadic_paths_.size() && !variadic_paths_[leaf].empty()) input.paths.push_back(variadic_paths_[leaf]);
  input.paths.push_back(concat("flat_args.", leaf));
  if (type) {
    input.value = builder.graph().block()->add_input(type, name);
    if (!scope.emplace(name, input.value).second) fail(ErrorCode::kDataLoss, source_, ": '", name, "' appears twice");
    function.schema.arguments.push_back(argument_of(input.name, type));
    signature_.inputs.push_back(describe(input.name, argument));
  }
  inputs_.push_back(std::move(input));
}

void Program::add_inputs(Function& function, GraphBuilder& builder, const ModuleTree& tree, Scope& scope) {
  GraphValue* self = builder.graph().block()->add_input(tree.root_class(), "self");
  function.schema.arguments.push_back(argument_of("self", tree.root_class()));
  const auto bind = [&](const Json& spec, const char* field) {
    const std::string name = string_member(member(spec, "arg", source_), "name", source_);
    GraphValue* value = tree.get(builder.block(), self, tensor_name(spec, field));
    if (!scope.emplace(name, value).second) fail(ErrorCode::kDataLoss, source_, ": '", name, "' appears twice");
  };
  for (const Json& spec : specs("input_specs")) {
    const auto [kind, value] = union_case(spec, concat(source_, ": input_specs"));
    if (kind == "parameter") {
      bind(value, "parameter_name");
    } else if (kind == "buffer") {
      bind(value, "buffer_name");
    } else if (kind == "tensor_constant") {
      bind(value, "tensor_constant_name");
    } else if (kind == "user_input") {
      add_user_input(member(value, "arg", source_), function, builder, scope);
    } else if (kind == "constant_input") {
      add_user_input(member(value, "value", source_), function, builder, scope);
    } else {
      fail(ErrorCode::kUnimplemented, source_, ": an input of kind ", kind, " is not supported");
    }
  }
}

void Program::add_checks(GraphBuilder& builder) {
  InputChecks checks(builder, inputs_, source_);
  checks.add_shapes();
  if (const Json* ranges = find_member(root_, "range_constraints")) checks.add_ranges(*ranges);
  if (const Json* guards = find_member(root_, "guards_code")) checks.add_guards(*guards);
}

// Results that are new values of buffers, parameters or inputs are written to those.
void Program::write_back(GraphBuilder& builder, const ModuleTree& tree, const Scope& scope) {
  const auto value_of = [&](const Json& spec) {
    const std::string name = string_member(member(spec, "arg", source_), "name", source_);
    const auto found = scope.find(name);
    if (found == scope.end()) fail(ErrorCode::kDataLoss, source_, ": output_specs: there is no value '", name, "'");
    return found->second;
  };
  const auto write = [&](GraphValue* target, GraphValue* value) {
    if (target != value) builder.op("aten::copy_", {target, value, builder.constant(false)});
  };
  for (const Json& spec : specs("output_specs")) {
    const auto [kind, value] = union_case(spec, concat(source_, ": output_specs"));
    if (kind == "buffer_mutation" || kind == "parameter_mutation") {
      const std::string name = tensor_name(value, kind == "buffer_mutation" ? "buffer_name" : "parameter_name");
      if (!tree.has(name)) fail(ErrorCode::kDataLoss, source_, ": output_specs: there is no tensor '", name, "'");
      write(tree.get(builder.block(), builder.graph().inputs()[0], name), value_of(value));
    } else if (kind == "user_input_mutation") {
      const std::string name = string_member(value, "user_input_name", source_);
      const auto found = scope.find(name);
      if (found == scope.end()) fail(ErrorCode::kDataLoss, source_, ": output_specs: there is no input '", name, "'");
      write(found->second, value_of(value));
    } else if (kind != "user_output" && kind != "loss_output") {
      fail(ErrorCode::kUnimplemented, source_, ": a result of kind ", kind, " is not supported");
    }
  }
}

GraphValue* Program::build_result(GraphBuilder& builder, const Pytree& tree, const std::vector<GraphValue*>& leaves,
                                  size_t& next) {
  if (tree.is_leaf) return leaves[next++];
  std::vector<GraphValue*> items;
  for (const Pytree& child : tree.children) items.push_back(build_result(builder, child, leaves, next));
  return builder.tuple(items, tree.names);
}

std::unique_ptr<Function> Program::make_method(const std::string& name, const ModuleTree& tree, bool records) {
  auto function = std::make_unique<Function>();
  function->name = concat(tree.root_class()->name(), ".", name);
  function->schema.name = function->name;
  function->graph = std::make_unique<Graph>();
  GraphBuilder builder(*function->graph);
  GraphReader reader(builder, source_, records);
  reader.check_targets(graph());
  read_names();
  Scope scope;
  add_inputs(*function, builder, tree, scope);
  add_checks(builder);
  reader.add_nodes(graph(), scope);
  builder.set_location({});
  write_back(builder, tree, scope);

  std::vector<GraphValue*> leaves;
  for (const Json& spec : specs("output_specs")) {
    const auto [kind, value] = union_case(spec, source_);
    if (kind != "user_output" && kind != "loss_output") continue;
    const Json& argument = member(value, "arg", source_);
    // A loss output has only the name.
    const Json whole = kind == "loss_output" ? Json{{"as_tensor", argument}} : argument;
    GraphValue* leaf = reader.argument(whole, scope);
    const size_t index = leaves.size();
    leaves.push_back(leaf);
    if (leaf->type()->kind() == ops::TypeKind::kNone) continue;
    signature_.outputs.push_back(describe(index < output_names_.size() ? output_names_[index] : "", whole));
  }
  if (leaves.size() != outputs_.leaf_count()) {
    fail(ErrorCode::kDataLoss, source_, ": gives ", leaves.size(), " values, but out_spec has ", outputs_.leaf_count());
  }
  size_t next = 0;
  GraphValue* result = build_result(builder, outputs_, leaves, next);
  function->graph->block()->add_output(result);
  function->schema.returns.push_back(argument_of("", result->type()));
  return function;
}

}  // namespace tensord::jit::pt2
