#include "core/jit/exporters/torchscript/source_printer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>

#include "core/base/ascii.h"
#include "core/base/error.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

[[noreturn]] void refuse(const Node& node, const std::string& why) {
  const std::string place = node.location().str();
  fail(ErrorCode::kUnimplemented, node.kind_name(), ": ", why, place.empty() ? "" : " (" + place + ")");
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  const std::string out = text;
  return out.find_first_of(".e") == std::string::npos ? out + "." : out;
}

// NamedTuples become tuples: their classes belong to the original format.
std::string type_string(const ops::TypePtr& type) {
  if (type->contained().empty() && type->kind() != TypeKind::kTuple) return type->str();
  std::string inner;
  for (const ops::TypePtr& one : type->contained()) inner += (inner.empty() ? "" : ", ") + type_string(one);
  switch (type->kind()) {
    case TypeKind::kTuple: return "Tuple[" + (inner.empty() ? "()" : inner) + "]";
    case TypeKind::kList: return "List[" + inner + "]";
    case TypeKind::kOptional: return "Optional[" + inner + "]";
    case TypeKind::kDict: return "Dict[" + inner + "]";
    default: return type->str();
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

// Whether an argument that PyTorch 1.13 does not have is redundant, so that it can be omitted: 1.13 reads these
// archives too.
bool says_nothing_new(const ops::Argument& argument, const ops::Value* value) {
  if (!value) return false;
  if (argument.name == "align_to_window") return value->is_none();
  if (argument.name == "enable_gqa") return value->is_bool() && !value->to_bool();
  return argument.name == "padding_side" && value->is_string() && value->to_string() == "right";
}

}  // namespace

bool is_identifier(const std::string& name) {
  static const std::set<std::string> kWords = {"and",      "as",   "assert", "break",  "class", "continue", "def",
                                               "del",      "elif", "else",   "except", "False", "for",      "from",
                                               "global",   "if",   "import", "in",     "is",    "lambda",   "None",
                                               "nonlocal", "not",  "or",     "pass",   "raise", "return",   "self",
                                               "torch",    "ops",  "True",   "try",    "while", "with",     "yield"};
  if (name.empty() || is_ascii_digit(name[0]) || kWords.contains(name)) return false;
  return std::ranges::all_of(name, [](char c) { return is_ascii_alnum(c) || c == '_'; });
}

std::string attribute_text(const std::string& owner, const std::string& name) {
  return is_identifier(name) ? owner + "." + name : "getattr(" + owner + ", " + quoted(name) + ")";
}

SourcePrinter::SourcePrinter(const ops::ObjectPtr& self) {
  std::vector<std::pair<const ops::Object*, std::string>> waiting{{self.get(), "self"}};
  while (!waiting.empty()) {
    const auto [object, path] = waiting.back();
    waiting.pop_back();
    if (!modules_.emplace(object, path).second) continue;
    const auto& attributes = object->type->attributes();
    for (size_t i = 0; i < std::min(attributes.size(), object->slots.size()); ++i) {
      const Value& value = object->slots[i];
      if (value.is_object()) waiting.emplace_back(value.to_object().get(), attribute_text(path, attributes[i].name));
    }
  }
}

void SourcePrinter::line(int depth, const std::string& text) {
  out_ += std::string(2 * static_cast<size_t>(depth), ' ') + text + "\n";
}

std::string SourcePrinter::assigned(const GraphValue* value) {
  define(value, concat("_", value->id()));
  return text(value);
}

std::string SourcePrinter::text(const GraphValue* value) const { return texts_.at(value); }

std::string SourcePrinter::constant(const Value& value, const ops::TypePtr& type) {
  switch (value.tag()) {
    case Value::Tag::kNone: return "None";
    case Value::Tag::kBool: return value.to_bool() ? "True" : "False";
    case Value::Tag::kInt: return std::to_string(value.to_int());
    case Value::Tag::kFloat: return number(value.to_float());
    case Value::Tag::kString: return quoted(value.to_string());
    case Value::Tag::kDevice: return "torch.device(" + quoted(to_string(value.to_device())) + ")";
    case Value::Tag::kObject: {
      // Passes inline modules where they are used.
      const auto found = modules_.find(value.to_object().get());
      if (found == modules_.end())
        fail(ErrorCode::kUnimplemented, "an object that is not a module of the model is not written");
      return found->second;
    }
    case Value::Tag::kTensor: {
      const std::string name = concat("_constant_", constants_.size());
      constants_[name] = value;
      return "self." + name;
    }
    case Value::Tag::kOpaque: {  // weights that are packed once
      const std::string name = concat("_packed_", constants_.size());
      constants_[name] = value;
      return "self." + name;
    }
    case Value::Tag::kList: {
      std::vector<std::string> items;
      for (const Value& item : value.to_list()->items) items.push_back(constant(item, value.to_list()->element));
      return "annotate(" + type_string(ops::list_type(value.to_list()->element)) + ", [" + joined(items) + "])";
    }
    case Value::Tag::kTuple: {
      std::vector<std::string> items;
      for (const Value& item : value.to_tuple()->items) items.push_back(constant(item, nullptr));
      return "(" + joined(items) + (items.size() == 1 ? ",)" : ")");
    }
    default:
      fail(ErrorCode::kUnimplemented, "a constant of type ", type ? type->str() : value.tag_name(),
           " cannot be exported to TorchScript");
  }
}

std::string SourcePrinter::print(const std::string& name, const ops::Schema& schema, const Graph& graph,
                                 const std::string& self_type) {
  out_.clear();
  texts_.clear();
  std::vector<std::string> arguments;
  std::set<std::string> taken;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphValue* input = graph.inputs()[i];
    if (i == 0) {
      define(input, "self");
      arguments.push_back("self: " + self_type);
      continue;
    }
    const ops::Argument& argument = schema.arguments.at(i - 1);
    std::string own = argument.name;
    std::ranges::replace_if(
        own, [](char c) { return !(is_ascii_alnum(c) || c == '_'); }, '_');
    if (!is_identifier(own) || own.starts_with("_")) own = concat("input_", i, own);
    while (!taken.insert(own).second) own += "_";
    define(input, own);
    arguments.push_back(own + ": " + type_string(input->type()) +
                        (argument.default_value ? "=" + constant(*argument.default_value, input->type()) : ""));
  }
  const GraphValue* result = graph.outputs()[0];
  line(1, concat("def ", name, "(", joined(arguments), ") -> ",
                 result->type()->kind() == TypeKind::kNone ? "None" : type_string(result->type()), ":"));
  block(*graph.block(), 2);
  line(2, "return " + text(result));
  return out_;
}

void SourcePrinter::block(const Block& block, int depth) {
  for (const Node* at = block.first(); at; at = at->next()) node(*at, depth);
}

std::string SourcePrinter::unpacked(const Node& node) {
  std::string names;
  for (const GraphValue* output : node.outputs()) names += assigned(output) + ", ";
  return names + "= ";
}

void SourcePrinter::node(const Node& node, int depth) {
  std::vector<std::string> inputs;
  for (const GraphValue* input : node.inputs()) {
    if (node.kind() != NodeKind::kConstant) inputs.push_back(text(input));
  }
  const auto assign = [&](const std::string& value) { line(depth, assigned(node.output()) + " = " + value); };
  switch (node.kind()) {
    case NodeKind::kOp: return op(node, depth);
    case NodeKind::kConstant: return define(node.output(), constant(node.constant(), node.output()->type()));
    case NodeKind::kIf: return branch(node, depth);
    case NodeKind::kLoop: return loop(node, depth);
    case NodeKind::kGetAttr:
      // Modules are only named; attributes that may be assigned in between are read where they are used.
      if (node.output()->type()->kind() == TypeKind::kClass)
        return define(node.output(), attribute_text(inputs[0], node.name()));
      return assign(attribute_text(inputs[0], node.name()));
    case NodeKind::kSetAttr:
      if (!is_identifier(node.name())) refuse(node, "an attribute of this name cannot be set in TorchScript");
      return line(depth, attribute_text(inputs[0], node.name()) + " = " + inputs[1]);
    case NodeKind::kListConstruct:
      return assign("annotate(" + type_string(node.output()->type()) + ", [" + joined(inputs) + "])");
    case NodeKind::kTupleConstruct: return assign("(" + joined(inputs) + (inputs.size() == 1 ? ",)" : ")"));
    case NodeKind::kDictConstruct: {
      std::string items;
      for (size_t i = 0; i < inputs.size(); i += 2) items += (i > 0 ? ", " : "") + inputs[i] + ": " + inputs[i + 1];
      return assign("annotate(" + type_string(node.output()->type()) + ", {" + items + "})");
    }
    case NodeKind::kListUnpack:
    case NodeKind::kTupleUnpack: {
      if (node.outputs().empty()) return;
      const std::string names = unpacked(node);
      return line(depth, names + inputs[0]);
    }
    case NodeKind::kTupleIndex: return assign(concat("(", inputs[0], ")[", node.index(), "]"));
    case NodeKind::kUncheckedCast:
      return assign("unchecked_cast(" + type_string(node.output()->type()) + ", " + inputs[0] + ")");
    case NodeKind::kUninitialized: return assign("uninitialized(" + type_string(node.output()->type()) + ")");
    case NodeKind::kIsInstance: {
      if (node.types().size() != 1) refuse(node, "several types cannot be exported to TorchScript");
      return assign("isinstance(" + inputs[0] + ", " + type_string(node.types()[0]) + ")");
    }
    default: refuse(node, "cannot be exported to TorchScript");
  }
}

std::string SourcePrinter::call(const Node& node) {
  const ops::Schema& schema = node.op()->schema;
  const size_t colon = schema.name.find("::");
  const std::string space = schema.name.substr(0, colon), name = schema.name.substr(colon + 2);
  static const std::map<std::string, std::string> kFunctions = {
      {"aten::Int", "int"}, {"aten::Float", "float"}, {"aten::Bool", "bool"}, {"aten::len", "torch.len"}};
  if (space != "aten" && space != "prim" && space != "quantized") refuse(node, "is not an operator of PyTorch");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const bool is_number = i < schema.arguments.size() && schema.arguments[i].type->kind() == TypeKind::kNumber;
    if (is_number && node.input(i)->type()->kind() == TypeKind::kBool)
      refuse(node, "a bool where PyTorch wants a number");
    const bool is_named = i < schema.arguments.size() && schema.arguments[i].is_keyword_only;
    if (i < schema.arguments.size() && says_nothing_new(schema.arguments[i], node.input(i)->constant())) continue;
    arguments.push_back((is_named ? schema.arguments[i].name + "=" : "") + text(node.input(i)));
  }
  // A check of a program's inputs, which is a separate error here.
  if (schema.name == "prim::InvalidInput") {
    const std::string message =
        node.input(1)->constant() ? arguments[0] : concat("torch.add(", arguments[0], ", str(", arguments[1], "))");
    return "ops.prim.RaiseException(" + message + ", None)";
  }
  if (schema.name == "aten::__getitem__") return concat("(", arguments[0], ")[", arguments[1], "]");
  const auto found = kFunctions.find(schema.name);
  if (found != kFunctions.end()) return found->second + "(" + joined(arguments) + ")";
  return (space == "aten" ? "torch." : "ops." + space + ".") + name + "(" + joined(arguments) + ")";
}

void SourcePrinter::op(const Node& node, int depth) {
  const std::string value = call(node);
  if (node.outputs().empty()) return line(depth, "_ = " + value);
  if (node.outputs().size() == 1) return line(depth, assigned(node.output()) + " = " + value);
  const std::string names = unpacked(node);
  line(depth, names + value);
}

void SourcePrinter::branch(const Node& node, int depth) {
  for (size_t way = 0; way < 2; ++way) {
    const Block& inner = *node.blocks()[way];
    line(depth, way == 0 ? "if " + text(node.input()) + ":" : "else:");
    if (!inner.first() && node.outputs().empty()) line(depth + 1, "pass");
    block(inner, depth + 1);
    for (size_t i = 0; i < node.outputs().size(); ++i)
      line(depth + 1, concat("_", node.output(i)->id(), " = ", text(inner.outputs()[i])));
  }
  for (const GraphValue* output : node.outputs()) assigned(output);
}

void SourcePrinter::loop(const Node& node, int depth) {
  const Block& body = *node.blocks()[0];
  const Value *trips = node.input(0)->constant(), *first = node.input(1)->constant(),
              *next = body.outputs()[0]->constant();
  const bool is_for = first && first->is_bool() && first->to_bool() && next && next->is_bool() && next->to_bool();
  const bool is_while = trips && trips->is_int() && trips->to_int() == INT64_MAX;
  if (!is_for && !is_while) refuse(node, "a loop with both a count and a condition cannot be exported to TorchScript");
  // Each variable has one name for its initial value, the carried value and the result.
  std::string condition;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    line(depth, assigned(node.output(i)) + " = " + text(node.input(i + 2)));
    define(body.inputs()[i + 1], text(node.output(i)));
  }
  define(body.inputs()[0], concat("_", body.inputs()[0]->id()));
  if (is_while) {
    condition = concat("_condition_", node.id());
    line(depth, condition + " = " + text(node.input(1)));
    if (body.inputs()[0]->has_uses()) line(depth, text(body.inputs()[0]) + " = 0");
  }
  line(depth, is_for ? "for " + text(body.inputs()[0]) + " in range(" + text(node.input(0)) + "):"
                     : "while " + condition + ":");
  block(body, depth + 1);
  // All values are computed before the first variable is replaced.
  std::vector<std::string> values;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    values.push_back(concat("_next_", node.output(i)->id()));
    line(depth + 1, values.back() + " = " + text(body.outputs()[i + 1]));
  }
  if (is_while) line(depth + 1, condition + " = " + text(body.outputs()[0]));
  for (size_t i = 0; i < values.size(); ++i) line(depth + 1, text(node.output(i)) + " = " + values[i]);
  if (is_while && body.inputs()[0]->has_uses())
    line(depth + 1, text(body.inputs()[0]) + " = torch.add(" + text(body.inputs()[0]) + ", 1)");
  if (!body.first() && values.empty() && is_for) line(depth + 1, "pass");
}

}  // namespace tensord::jit
