#include <charconv>
#include <cmath>
#include <unordered_map>

#include "core/jit/ir/text.h"

namespace tensord::jit {

using ops::Value;

namespace {

std::string quote(std::string_view text) {
  static const char* kHex = "0123456789abcdef";
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

// The shortest text that parses to the same double and does not look like an int.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string out(buffer, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

// Prints constants, and collects those that have no text form.
class ConstantPrinter {
 public:
  explicit ConstantPrinter(std::vector<Value>* table) : table_(table) {}

  std::string text(const Value& value, int depth = 0) {
    switch (value.tag()) {
      case Value::Tag::kNone: return "None";
      case Value::Tag::kBool: return value.to_bool() ? "True" : "False";
      case Value::Tag::kInt: return std::to_string(value.to_int());
      case Value::Tag::kFloat: return float_text(value.to_float());
      case Value::Tag::kComplex: return reference("complex " + ops::to_string(value.to_complex()), value);
      case Value::Tag::kDevice: return "device(" + quote(to_string(value.to_device())) + ")";
      case Value::Tag::kString: return quote(value.to_string());
      case Value::Tag::kTensor: return reference("Tensor " + describe(value.to_tensor()), value);
      case Value::Tag::kList:
      case Value::Tag::kDict:
      case Value::Tag::kTuple: return depth < kMaxDepth ? container(value, depth) : reference(value.tag_name(), value);
      case Value::Tag::kObject: return reference("object " + value.to_object()->type->name(), value);
      case Value::Tag::kEnum: return reference("enum " + value.to_enum()->name, value);
      case Value::Tag::kFunction: return reference("function " + value.to_function()->name, value);
      case Value::Tag::kOpaque: return reference("opaque " + value.to_opaque()->class_name(), value);
      case Value::Tag::kFuture: return reference("future", value);
    }
    return {};
  }

 private:
  static constexpr int kMaxDepth = 32;

  std::string container(const Value& value, int depth) {
    if (value.is_dict()) {
      std::string out;
      for (const auto& [key, item] : value.to_dict()->items()) {
        out += (out.empty() ? "" : ", ") + text(key, depth + 1) + ": " + text(item, depth + 1);
      }
      return "{" + out + "}";
    }
    std::string out;
    const auto& items = value.is_list() ? value.to_list()->items : value.to_tuple()->items;
    for (const Value& item : items) out += (out.empty() ? "" : ", ") + text(item, depth + 1);
    if (value.is_list()) return "[" + out + "]";
    return "(" + out + (items.size() == 1 ? ",)" : ")");
  }

  std::string reference(const std::string& description, const Value& value) {
    return "<" + description + " @" + std::to_string(index_of(value)) + ">";
  }

  static const void* identity(const Value& value) {
    switch (value.tag()) {
      case Value::Tag::kTensor: return value.to_tensor().impl();
      case Value::Tag::kList: return value.to_list().get();
      case Value::Tag::kDict: return value.to_dict().get();
      case Value::Tag::kTuple: return value.to_tuple().get();
      case Value::Tag::kObject: return value.to_object().get();
      case Value::Tag::kEnum: return value.to_enum().get();
      case Value::Tag::kFunction: return value.to_function().get();
      case Value::Tag::kOpaque: return value.to_opaque().get();
      case Value::Tag::kFuture: return value.to_future().get();
      case Value::Tag::kComplex: return value.identity();
      default: return nullptr;
    }
  }

  size_t index_of(const Value& value) {
    auto [it, is_new] = indices_.try_emplace(identity(value), indices_.size());
    if (is_new && table_) table_->push_back(value);
    return it->second;
  }

  std::vector<Value>* table_;
  std::unordered_map<const void*, size_t> indices_;
};

class GraphPrinter {
 public:
  explicit GraphPrinter(std::vector<Value>* table) : constants_(table) {}

  std::string graph(const Graph& graph) {
    out_ = "graph(";
    define(graph.inputs());
    out_ += "):\n";
    nodes(*graph.block(), 1);
    out_ += "  return ";
    values(graph.outputs());
    out_ += "\n";
    return std::move(out_);
  }

  std::string line(const Node& node) {
    head(node);
    return std::move(out_);
  }

 private:
  const std::string& name(const GraphValue* value) {
    std::string& text = names_[value];
    if (!text.empty()) return text;
    std::string base = clean(value->name());
    if (base.empty()) return text = "%" + std::to_string(next_number_++);
    int& count = name_counts_[base];
    text = "%" + base + (count == 0 ? "" : "." + std::to_string(count));
    ++count;
    return text;
  }

  // Names become identifiers. A leading digit would look like a numbered value.
  static std::string clean(const std::string& name) {
    std::string out;
    for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (!out.empty() && std::isdigit(static_cast<unsigned char>(out[0]))) out = "_" + out;
    return out;
  }

  void define(std::span<GraphValue* const> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += name(values[i]);
      out_ += " : ";
      out_ += values[i]->type() ? values[i]->type()->str() : "?";
    }
  }

  void values(std::span<GraphValue* const> values) {
    out_ += "(";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += name(values[i]);
    }
    out_ += ")";
  }

  void attributes(const Node& node) {
    switch (node.kind()) {
      case NodeKind::kConstant: out_ += "[value=" + constants_.text(node.constant()) + "]"; break;
      case NodeKind::kGetAttr:
      case NodeKind::kSetAttr:
      case NodeKind::kCallMethod:
      case NodeKind::kCallFunction: out_ += "[name=" + quote(node.name()) + "]"; break;
      case NodeKind::kTupleIndex: out_ += "[index=" + std::to_string(node.index()) + "]"; break;
      case NodeKind::kIsInstance: {
        std::string types;
        for (const ops::TypePtr& type : node.types()) types += (types.empty() ? "" : ", ") + type->str();
        out_ += "[types=(" + types + ")]";
        break;
      }
      default: break;
    }
  }

  void head(const Node& node) {
    define(node.outputs());
    if (!node.outputs().empty()) out_ += " = ";
    out_ += node.kind_name();
    attributes(node);
    values(node.inputs());
  }

  // The shapes that shape_prop found for a node's tensors: "float32[2, 3]". "" if it found none.
  static std::string shapes_of(const Node& node) {
    std::string text;
    if (node.kind() == NodeKind::kConstant) return text;
    for (const GraphValue* output : node.outputs()) {
      if (!output->known().is_strided()) continue;
      text += (text.empty() ? "" : ", ") + describe(output->known().to_tensor());
    }
    return text;
  }

  void nodes(const Block& block, int depth) {
    for (const Node* node = block.first(); node; node = node->next()) {
      out_.append(2 * static_cast<size_t>(depth), ' ');
      head(*node);
      const std::string shapes = shapes_of(*node), location = node->location().str();
      if (!shapes.empty() || !location.empty()) out_ += "  #";
      if (!shapes.empty()) out_ += " " + shapes;
      if (!location.empty()) out_ += " " + location;
      out_ += "\n";
      for (size_t i = 0; i < node->blocks().size(); ++i) {
        const Block& inner = *node->blocks()[i];
        out_.append(2 * static_cast<size_t>(depth) + 2, ' ');
        out_ += "block" + std::to_string(i) + "(";
        define(inner.inputs());
        out_ += "):\n";
        nodes(inner, depth + 2);
        out_.append(2 * static_cast<size_t>(depth) + 4, ' ');
        out_ += "-> ";
        values(inner.outputs());
        out_ += "\n";
      }
    }
  }

  std::string out_;
  ConstantPrinter constants_;
  std::unordered_map<const GraphValue*, std::string> names_;
  std::unordered_map<std::string, int> name_counts_;
  size_t next_number_ = 0;
};

}  // namespace

std::string print_graph(const Graph& graph) { return GraphPrinter(nullptr).graph(graph); }

std::string print_graph(const Graph& graph, std::vector<Value>* constants) {
  return GraphPrinter(constants).graph(graph);
}

std::string print_node(const Node& node) { return GraphPrinter(nullptr).line(node); }

std::string print_constant(const Value& value) { return ConstantPrinter(nullptr).text(value); }

}  // namespace tensord::jit
