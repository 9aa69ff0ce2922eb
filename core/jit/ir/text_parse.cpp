#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/base/error.h"
#include "core/jit/ir/text.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::TypePtr;
using ops::Value;

namespace {

constexpr int kMaxDepth = 64;

class GraphParser {
 public:
  GraphParser(std::string_view text, std::span<const Value> constants, const ops::TypeResolver& resolver)
      : text_(text), constants_(constants), resolver_(resolver) {}

  std::unique_ptr<Graph> parse() {
    graph_ = std::make_unique<Graph>();
    expect("graph");
    expect("(");
    block_inputs(graph_->block());
    expect(":");
    nodes(graph_->block(), 0);
    expect("return");
    for (GraphValue* value : values()) graph_->block()->add_output(value);
    skip_space();
    if (position_ != text_.size()) error("text after the end of the graph");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void error(const std::string& what) const {
    size_t line = 1;
    for (char c : text_.substr(0, position_)) line += c == '\n';
    fail(ErrorCode::kInvalidArgument, "graph text, line ", line, ": ", what);
  }

  // ---- tokens

  void skip_space() {
    while (position_ < text_.size()) {
      if (text_[position_] == '#') {
        while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      } else if (std::isspace(static_cast<unsigned char>(text_[position_]))) {
        ++position_;
      } else {
        return;
      }
    }
  }
  bool looking_at(std::string_view token) {
    skip_space();
    return text_.substr(position_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!looking_at(token)) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) error("expected '" + std::string(token) + "'");
  }
  std::string_view word(std::string_view extra) {
    skip_space();
    size_t begin = position_;
    while (position_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[position_])) ||
                                        extra.find(text_[position_]) != std::string_view::npos)) {
      ++position_;
    }
    if (begin == position_) error("expected a name");
    return text_.substr(begin, position_ - begin);
  }

  // ---- types

  // Reads a type up to a character of `ends` outside brackets.
  TypePtr type(std::string_view ends) {
    skip_space();
    size_t begin = position_;
    int depth = 0;
    for (; position_ < text_.size(); ++position_) {
      char c = text_[position_];
      if (depth == 0 && ends.find(c) != std::string_view::npos) break;
      if (c == '[' || c == '(') ++depth;
      if (c == ']' || c == ')') --depth;
      if (depth < 0) break;
    }
    std::string_view text = text_.substr(begin, position_ - begin);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return ops::parse_annotation(text, [this](const std::string& name) { return named_type(name); });
  }

  TypePtr named_type(const std::string& name) {
    if (resolver_) {
      if (TypePtr known = resolver_(name)) return known;
    }
    TypePtr& made = types_[name];
    if (made) return made;
    if (name.find('.') == std::string::npos) return made = ops::opaque_type(name);
    return made = std::make_shared<ops::ClassType>(name, true);
  }

  // ---- values

  std::string value_name() {
    expect("%");
    return std::string(word("_."));
  }

  // The script name in "x.1"; empty for "12".
  static std::string script_name(const std::string& name) {
    if (std::isdigit(static_cast<unsigned char>(name[0]))) return {};
    return name.substr(0, name.find('.'));
  }

  void define(const std::string& name, GraphValue* value) {
    if (!by_name_.emplace(name, value).second) error("%" + name + " is defined twice");
    value->set_name(script_name(name));
  }

  GraphValue* use() {
    std::string name = value_name();
    auto it = by_name_.find(name);
    if (it == by_name_.end()) error("%" + name + " is not defined");
    return it->second;
  }

  std::vector<GraphValue*> values() {
    std::vector<GraphValue*> out;
    expect("(");
    while (!take(")")) {
      if (!out.empty()) expect(",");
      out.push_back(use());
    }
    return out;
  }

  void block_inputs(Block* block) {
    while (!take(")")) {
      if (!block->inputs().empty()) expect(",");
      std::string name = value_name();
      expect(":");
      define(name, block->add_input(type(",)")));
    }
  }

  // ---- nodes

  void nodes(Block* block, int depth) {
    if (depth > kMaxDepth) error("blocks are nested too deeply");
    while (!looking_at("return") && !looking_at("->")) node(block, depth);
  }

  void node(Block* block, int depth) {
    std::vector<std::pair<std::string, TypePtr>> outputs;
    while (looking_at("%")) {
      std::string name = value_name();
      expect(":");
      outputs.emplace_back(name, type(",="));
      if (!take(",")) expect("=");
    }
    std::string_view kind_name = word("_.:");
    Node* node = create(kind_name, outputs.empty() ? nullptr : outputs.front().second);
    for (GraphValue* input : values()) node->add_input(input);
    location(node);
    node->append_to(block);
    int number = 0;
    while (looking_at("block" + std::to_string(number) + "(")) {
      take("block" + std::to_string(number++));
      take("(");
      Block* inner = node->add_block();
      block_inputs(inner);
      expect(":");
      nodes(inner, depth + 1);
      expect("->");
      for (GraphValue* value : values()) inner->add_output(value);
    }
    // The outputs are defined after the blocks, because a block cannot use the outputs of its node.
    for (auto& [name, output_type] : outputs) define(name, node->add_output(output_type));
  }

  Node* create(std::string_view kind_name, const TypePtr& output_type) {
    for (int k = static_cast<int>(NodeKind::kConstant); k <= static_cast<int>(NodeKind::kPlan); ++k) {
      NodeKind kind = static_cast<NodeKind>(k);
      if (kind_name != to_string(kind)) continue;
      Node* node = graph_->create(kind);
      attributes(node, output_type);
      return node;
    }
    const ops::Op* op = ops::find_op(kind_name);
    if (!op) error("operator " + std::string(kind_name) + " is not registered");
    Node* node = graph_->create(*op, {});
    for (size_t i = node->outputs().size(); i > 0; --i) node->remove_output(i - 1);
    return node;
  }

  void attributes(Node* node, const TypePtr& output_type) {
    if (!take("[")) return;
    std::string_view key = word("_");
    expect("=");
    if (key == "value") {
      node->set_constant(constant(output_type, 0));
    } else if (key == "name") {
      node->set_name(string());
    } else if (key == "index") {
      node->set_index(number().to_int());
    } else if (key == "types") {
      expect("(");
      std::vector<TypePtr> types;
      while (!take(")")) {
        if (!types.empty()) expect(",");
        types.push_back(type(",)"));
      }
      node->set_types(std::move(types));
    } else {
      error("attribute '" + std::string(key) + "' is not known");
    }
    expect("]");
  }

  // Reads "  # file:12" after a node.
  void location(Node* node) {
    std::string_view comment = text_.substr(position_);
    comment = comment.substr(0, comment.find('\n'));
    size_t hash = comment.find("# ");
    if (hash == std::string_view::npos) return;
    comment.remove_prefix(hash + 2);
    size_t colon = comment.rfind(':');
    if (colon == std::string_view::npos) return;
    int line = 0;
    std::string_view digits = comment.substr(colon + 1);
    auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), line);
    if (code != std::errc() || stop != digits.data() + digits.size()) return;
    SourceLocation location;
    std::string file(comment.substr(0, colon));
    if (!file_ || *file_ != file) file_ = std::make_shared<const std::string>(file);
    location.file_name = file_;
    location.line = line;
    node->set_location(std::move(location));
  }

  // ---- constants

  Value constant(const TypePtr& type, int depth) {
    if (depth > kMaxDepth) error("constants are nested too deeply");
    skip_space();
    if (take("None")) return {};
    if (take("True")) return true;
    if (take("False")) return false;
    if (take("device(")) {
      std::string text = string();
      expect(")");
      return parse_device(text);
    }
    if (take("<")) return reference();
    if (take("[")) return list(type, depth);
    if (take("{")) return dict(type, depth);
    if (take("(")) return tuple(type, depth);
    if (looking_at("\"")) return string();
    return number();
  }

  static TypePtr strip_optional(const TypePtr& type) {
    return type && type->kind() == ops::TypeKind::kOptional ? type->element() : type;
  }

  // The type of member `i` in a container type; null if the text does not give it.
  static TypePtr member(const TypePtr& type, ops::TypeKind kind, size_t i) {
    return type && type->kind() == kind && i < type->contained().size() ? type->contained()[i] : nullptr;
  }

  Value list(const TypePtr& declared, int depth) {
    TypePtr element = member(strip_optional(declared), ops::TypeKind::kList, 0);
    std::vector<Value> items;
    while (!take("]")) {
      if (!items.empty()) expect(",");
      items.push_back(constant(element, depth + 1));
    }
    if (!element) element = items.empty() ? ops::tensor_type() : ops::type_of(items.front());
    return ops::make_list(element, std::move(items));
  }

  Value dict(const TypePtr& declared, int depth) {
    TypePtr key = member(strip_optional(declared), ops::TypeKind::kDict, 0);
    TypePtr item = member(strip_optional(declared), ops::TypeKind::kDict, 1);
    auto out = make_intrusive<ops::DictObject>(key ? key : ops::string_type(), item ? item : ops::any_type());
    while (!take("}")) {
      if (!out->items().empty()) expect(",");
      Value name = constant(key, depth + 1);
      expect(":");
      out->set(std::move(name), constant(item, depth + 1));
    }
    return out;
  }

  Value tuple(const TypePtr& declared, int depth) {
    std::vector<Value> items;
    while (!take(")")) {
      if (!items.empty()) expect(",");
      if (take(")")) break;
      items.push_back(constant(member(strip_optional(declared), ops::TypeKind::kTuple, items.size()), depth + 1));
    }
    return ops::make_tuple(std::move(items));
  }

  Value reference() {
    const size_t at = text_.find_first_of("@>", position_);
    if (at == std::string_view::npos || text_[at] != '@') error("expected '@N>'");
    position_ = at + 1;
    int64_t index = number().to_int();
    expect(">");
    if (index < 0 || static_cast<size_t>(index) >= constants_.size()) {
      error("constant @" + std::to_string(index) + " is not in the table");
    }
    return constants_[static_cast<size_t>(index)];
  }

  Value number() {
    skip_space();
    size_t begin = position_;
    if (position_ < text_.size() && text_[position_] == '-') ++position_;
    std::string_view rest = text_.substr(position_);
    double sign = position_ > begin ? -1 : 1;
    for (auto [name, value] : {std::pair{"inf", std::numeric_limits<double>::infinity()},
                               std::pair{"nan", std::numeric_limits<double>::quiet_NaN()}}) {
      if (!rest.starts_with(name)) continue;
      position_ += 3;
      return sign * value;
    }
    bool is_float = false;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '.' ||
            ((text_[position_] == '-' || text_[position_] == '+') && text_[position_ - 1] == 'e'))) {
      is_float |= text_[position_] == '.' || text_[position_] == 'e';
      ++position_;
    }
    std::string_view digits = text_.substr(begin, position_ - begin);
    return is_float ? Value(from_text<double>(digits)) : Value(from_text<int64_t>(digits));
  }

  template <class T>
  T from_text(std::string_view digits) {
    T value = 0;
    auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || code != std::errc() || stop != digits.data() + digits.size()) error("expected a constant");
    return value;
  }

  std::string string() {
    expect("\"");
    std::string out;
    for (; position_ < text_.size(); ++position_) {
      char c = text_[position_];
      if (c == '"') {
        ++position_;
        return out;
      }
      out += c == '\\' ? escaped() : c;
    }
    error("a string has no end");
  }

  char escaped() {
    ++position_;
    if (position_ >= text_.size()) error("a string has no end");
    char c = text_[position_];
    if (c == 'n') return '\n';
    if (c != 'x') return c;
    int code = 0;
    std::string_view digits = text_.substr(position_ + 1, 2);
    auto [stop, result] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (result != std::errc() || stop != digits.data() + 2) error("expected two hexadecimal digits");
    position_ += 2;
    return static_cast<char>(code);
  }

  std::string_view text_;
  std::span<const Value> constants_;
  const ops::TypeResolver& resolver_;
  size_t position_ = 0;
  std::unique_ptr<Graph> graph_;
  std::unordered_map<std::string, GraphValue*> by_name_;
  std::map<std::string, TypePtr> types_;
  std::shared_ptr<const std::string> file_;
};

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text, std::span<const Value> constants,
                                   const ops::TypeResolver& resolver) {
  return GraphParser(text, constants, resolver).parse();
}

}  // namespace tensord::jit
