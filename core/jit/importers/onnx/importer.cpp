#include "core/jit/importers/onnx/importer.h"

#include <algorithm>
#include <set>

#include "core/base/ascii.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/importers/onnx/result_shapes.h"
#include "core/jit/ir/refusals.h"

namespace tensord::jit::onnx {
namespace {

// Functions that repeatedly call others can make a small file large.
constexpr size_t kMaxSteps = 1'000'000, kMaxNodes = 5'000'000;
constexpr int kMaxGraphDepth = 60;

// An error whose message names the node already.
class NodeError : public Error {
 public:
  using Error::Error;
};

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return concat(domain, "\n", name, "\n", overload);
}

std::string operator_name(const NodeProto& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

}  // namespace

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) out += is_ascii_alnum(c) ? c : '_';
  if (out.empty() || is_ascii_digit(out[0])) out.insert(0, "_");
  return out;
}

ops::TypePtr to_type(const TypeProto& proto, const std::string& what, bool checks) {
  switch (proto.kind) {
    case TypeProto::Kind::kTensor:
      if (checks) to_dtype(proto.elem_type, what);
      return ops::tensor_type();
    case TypeProto::Kind::kSequence:
    case TypeProto::Kind::kOptional: {
      if (!proto.element) fail(ErrorCode::kDataLoss, what, ": its type has no element type");
      ops::TypePtr element = to_type(*proto.element, what, checks);
      return proto.kind == TypeProto::Kind::kSequence ? ops::list_type(element) : ops::optional_type(element);
    }
    case TypeProto::Kind::kMap: fail(ErrorCode::kUnimplemented, what, ": maps are not supported");
    case TypeProto::Kind::kSparseTensor: fail(ErrorCode::kUnimplemented, what, ": sparse tensors are not supported");
    case TypeProto::Kind::kNone: break;
  }
  if (checks) fail(ErrorCode::kDataLoss, what, ": has no type");
  return ops::tensor_type();
}

// Removes names that were defined during its lifetime.
class Importer::InScope {
 public:
  InScope(Importer& importer, bool sees_outer) : importer_(importer), outer_(importer.scope_) {
    if (++importer.depth_ > kMaxGraphDepth)
      fail(ErrorCode::kResourceExhausted, "graphs and functions are nested too deep");
    if (sees_outer) scope_.outer = outer_;
    importer.scope_ = &scope_;
  }
  ~InScope() {
    importer_.scope_ = outer_;
    --importer_.depth_;
  }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Importer& importer_;
  Scope* outer_;
  Scope scope_;
};

Importer::Importer(const ModelProto& model, std::string file, TensorReader& tensors, Graph& graph)
    : model_(model),
      file_(std::move(file)),
      tensors_(tensors),
      library_(OperatorLibrary::instance()),
      builder_(graph),
      copier_(builder_, library_, [this](const GraphValue* value) { return tensor_of(value); }),
      checks_(library_, [this](const GraphValue* value) { return tensor_of(value); }),
      opsets_(&model.opset_imports) {
  for (const FunctionProto& function : model.functions) {
    functions_.emplace(function_key(function.domain, function.name, function.overload), &function);
  }
  for (const ValueInfoProto& info : model.graph.value_infos) value_infos_.emplace(info.name, &info.type);
}

void Importer::define(const std::string& name, GraphValue* value) {
  if (!scope_->values.emplace(name, value).second) fail(ErrorCode::kDataLoss, "value '", name, "' is made twice");
  if (value && value->name().empty()) value->set_name(plain_name(name));
}

GraphValue* const* Importer::find(const std::string& name) const {
  for (const Scope* scope = scope_; scope; scope = scope->outer) {
    if (const auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
  }
  return nullptr;
}

GraphValue* Importer::value(const std::string& name) {
  GraphValue* const* found = find(name);
  if (!found) fail(ErrorCode::kDataLoss, "value '", name, "' is used, but nothing before makes it");
  return *found;
}

GraphValue* Importer::input(const NodeProto& node, size_t i) {
  if (i >= node.inputs.size() || node.inputs[i].empty()) return nullptr;
  GraphValue* found = value(node.inputs[i]);
  const bool takes_four_bits =
      (node.domain.empty() && (node.op_type == "DequantizeLinear" || node.op_type == "Identity")) ||
      (node.domain == "com.microsoft" && node.op_type == "GatherBlockQuantized") || local_function(node);
  if (!takes_four_bits) check_element_type(found);
  return found;
}

void Importer::check_element_type(const GraphValue* value) const {
  const auto found = four_bits_.find(value);
  if (found == four_bits_.end()) return;
  fail(ErrorCode::kUnimplemented, "element type ", data_type_name(found->second), " is not supported here");
}

GraphValue* Importer::constant_of(const TensorProto& tensor) {
  GraphValue* value = builder_.constant(tensors_.read_attribute(tensor));
  if (has_four_bits(tensor.data_type)) mark_four_bits(value, tensor.data_type);
  return value;
}

Importer::Values Importer::inputs(const NodeProto& node) {
  Values values;
  for (size_t i = 0; i < node.inputs.size(); ++i) values.push_back(input(node, i));
  return values;
}

int64_t Importer::opset(const std::string& domain) const {
  const auto found = opsets_->find(domain);
  if (found == opsets_->end()) fail(ErrorCode::kDataLoss, "opset_import has no version of domain '", domain, "'");
  return found->second;
}

void Importer::run() { nodes(model_.graph.nodes); }

void Importer::nodes(const std::vector<NodeProto>& nodes) {
  for (const NodeProto& each : nodes) node(each);
}

void Importer::set_place(const NodeProto& node) {
  // A node's name and number take the place of a script's file and line.
  place_.file_name =
      std::make_shared<std::string>(concat(file_, ", node '", node.name, "' (", operator_name(node), ")"));
  place_.line = static_cast<int>(node_number_);
  builder_.set_location(place_);
}

void Importer::node(const NodeProto& node) {
  check_work_cancelled();
  if (++steps_ > kMaxSteps || builder_.graph().node_count() > kMaxNodes) {
    fail(ErrorCode::kResourceExhausted, file_, ": the model becomes too large when its functions are expanded");
  }
  if (scope_ == &main_) ++node_number_;
  set_place(node);
  const bool reads = reads_refused(node);
  const bool is_done = attempt(node, [&] { reads ? check_without_inputs(node) : dispatch(node); });
  if (reads || !is_done) refused_.insert(node.outputs.begin(), node.outputs.end());
}

bool Importer::attempt(const NodeProto& node, const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const NodeError&) {
    throw;
  } catch (const Error& error) {
    const bool is_ended = error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded;
    const NodeError named(error.code(),
                          concat(file_, ": node '", node.name, "' (", operator_name(node), "): ", error.what()));
    if (is_ended || !collect_refusal(named.what())) throw NodeError(named);
    return false;
  }
}

void Importer::dispatch(const NodeProto& node) {
  if (const FunctionProto* function = local_function(node)) {
    define_outputs(node, call_local(*function, node));
    return;
  }
  check_opset(node);
  if (special(node)) return;
  const Values results = call_operator(library_function(node), node);
  note_shapes(node, results);
  define_outputs(node, results);
}

void Importer::refuse_operator(const NodeProto& node, const std::string& why) const {
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  fail(ErrorCode::kUnimplemented, "operator ", node.op_type, " of domain ", domain, ", opset ", opset(node.domain),
       ", ", why);
}

void Importer::check_opset(const NodeProto& node) const {
  const int64_t newest = OperatorLibrary::newest_opset(node.domain);
  if (newest == 0 || opset(node.domain) <= newest) return;
  refuse_operator(node, concat("is newer than opset ", newest, ", the newest that is known"));
}

const Function& Importer::library_function(const NodeProto& node) const {
  const Function* function = library_.find(node.domain, node.op_type, opset(node.domain));
  if (function) return *function;
  const bool is_known = library_.knows(node.domain, node.op_type);
  refuse_operator(node, is_known ? "is not supported in that version" : "is not supported");
}

void Importer::note_shapes(const NodeProto& node, const Values& results) {
  // For inputs that are given.
  const auto of = [&](auto fact) {
    return [this, &node, fact](size_t i) {
      GraphValue* const value = input(node, i);
      return value ? (checks_.*fact)(value) : decltype((checks_.*fact)(value))();
    };
  };
  // Which dimensions are removed depends on their sizes: the only operator of which the number of dimensions does.
  const bool drops_ones =
      node.domain.empty() && node.op_type == "Squeeze" && !input(node, 1) && !node.find_attribute("axes");
  if (drops_ones && !checks_.has_one_shape(input(node, 0))) return checks_.set(results[0], nullptr);
  const InputFacts facts{of(&LoadChecks::rank), of(&LoadChecks::sizes), of(&LoadChecks::length),
                         of(&LoadChecks::dtype)};
  for (size_t i = 0; i < results.size(); ++i) {
    const std::optional<ShapeOfResult> known = shape_of_result(node, i, facts);
    if (known) checks_.set_shape(results[i], known->sizes, known->dtype);
  }
}

void Importer::define_outputs(const NodeProto& node, const Values& results) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size())
      fail(ErrorCode::kDataLoss, "has ", node.outputs.size(), " outputs, but gives ", results.size());
    define(node.outputs[i], results[i]);
    if (scope_ != &main_) continue;
    const auto info = value_infos_.find(node.outputs[i]);
    if (info != value_infos_.end()) checks_.declare_rank(results[i], *info->second);
  }
}

Attributes Importer::attributes(const NodeProto& node) const {
  Attributes resolved;
  for (const AttributeProto& attribute : node.attributes) {
    const AttributeProto* value = &attribute;
    if (!attribute.ref_attr_name.empty()) {
      if (!function_attributes_) fail(ErrorCode::kDataLoss, "attribute '", attribute.name, "' is of a function");
      const auto found = function_attributes_->find(attribute.ref_attr_name);
      if (found == function_attributes_->end()) continue;
      value = found->second;
    }
    if (!resolved.emplace(attribute.name, value).second) {
      fail(ErrorCode::kDataLoss, "attribute '", attribute.name, "' appears twice");
    }
  }
  return resolved;
}

const FunctionProto* Importer::local_function(const NodeProto& node) const {
  const auto found = functions_.find(function_key(node.domain, node.op_type, node.overload));
  return found == functions_.end() ? nullptr : found->second;
}

Importer::Values Importer::call_local(const FunctionProto& function, const NodeProto& node) {
  if (std::ranges::find(calls_, &function) != calls_.end()) {
    fail(ErrorCode::kDataLoss, "function '", function.name, "' calls itself");
  }
  const Values arguments = inputs(node);
  if (arguments.size() > function.inputs.size()) {
    fail(ErrorCode::kDataLoss, "has ", arguments.size(), " inputs, but the function takes ", function.inputs.size());
  }
  Attributes given = attributes(node);
  for (const auto& [name, attribute] : given) {
    const bool is_known =
        std::ranges::find(function.attributes, name) != function.attributes.end() ||
        std::ranges::find(function.attribute_protos, name, &AttributeProto::name) != function.attribute_protos.end();
    if (!is_known) fail(ErrorCode::kUnimplemented, "attribute '", name, "' is not known");
  }
  for (const AttributeProto& attribute : function.attribute_protos) given.emplace(attribute.name, &attribute);
  const InScope scope(*this, /*sees_outer=*/false);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    define(function.inputs[i], i < arguments.size() ? arguments[i] : nullptr);
  }
  struct Context {
    Importer& importer;
    const OpsetImports* opsets;
    const Attributes* attributes;
    ~Context() {
      importer.calls_.pop_back();
      importer.opsets_ = opsets;
      importer.function_attributes_ = attributes;
    }
  } context{*this, opsets_, function_attributes_};
  calls_.push_back(&function);
  opsets_ = &function.opset_imports;
  function_attributes_ = &given;
  nodes(function.nodes);
  Values results;
  for (const std::string& name : function.outputs) results.push_back(value(name));
  return results;
}

Importer::Values Importer::subgraph(const GraphProto& graph, const Values& arguments) {
  if (graph.inputs.size() != arguments.size()) {
    fail(ErrorCode::kDataLoss, "graph '", graph.name, "' has ", graph.inputs.size(), " inputs, but gets ",
         arguments.size());
  }
  const InScope scope(*this, /*sees_outer=*/true);
  for (size_t i = 0; i < arguments.size(); ++i) define(graph.inputs[i].name, arguments[i]);
  for (const TensorProto& tensor : graph.initializers) define(tensor.name, constant_of(tensor));
  for (const SparseTensorProto& tensor : graph.sparse_initializers) {
    define(tensor.values.name, builder_.constant(tensors_.read_attribute(tensor)));
  }
  nodes(graph.nodes);
  Values results;
  for (const ValueInfoProto& output : graph.outputs) {
    results.push_back(value(output.name));
    if (!results.back()) fail(ErrorCode::kDataLoss, "output '", output.name, "' is an input that is left out");
    check_element_type(results.back());
  }
  return results;
}

}  // namespace tensord::jit::onnx
