#include <map>

#include "core/jit/ir/text.h"

namespace tensord::jit {

namespace {

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Nodes are boxes, values are edges labeled with their types, blocks are clusters. Constants are written into the boxes
// that use them, so that the picture stays readable.
class DotPrinter {
 public:
  std::string graph(const Graph& graph) {
    out_ = "digraph graph_ {\n  rankdir=TB;\n  node [shape=box, fontname=monospace, fontsize=10];\n";
    block(*graph.block(), "  ");
    return out_ + "}\n";
  }

 private:
  void block(const Block& block, const std::string& indent) {
    for (size_t i = 0; i < block.inputs().size(); ++i) {
      const GraphValue* value = block.inputs()[i];
      std::string label = value->name().empty() ? "input " + std::to_string(i) : value->name();
      out_ += indent + id(value) + " [shape=ellipse, label=\"" + escape(label) + "\"];\n";
    }
    for (const Node* node = block.first(); node; node = node->next()) {
      if (node->kind() != NodeKind::kConstant) this->node(*node, indent);
    }
    std::string sink = "out" + std::to_string(next_++);
    out_ += indent + sink + " [shape=ellipse, label=\"output\"];\n";
    for (const GraphValue* value : block.outputs()) edge(value, sink, indent);
  }

  void node(const Node& node, const std::string& indent) {
    std::string own = "n" + std::to_string(next_++);
    for (const GraphValue* output : node.outputs()) sources_[output] = own;
    std::string label = escape(node.kind_name());
    if (!node.name().empty()) label += " " + escape(node.name());
    for (const GraphValue* input : node.inputs()) {
      if (const ops::Value* constant = input->constant()) label += "\\n" + escape(shorten(print_constant(*constant)));
    }
    out_ += indent + own + " [label=\"" + label + "\"];\n";
    for (const GraphValue* input : node.inputs()) edge(input, own, indent);
    for (size_t i = 0; i < node.blocks().size(); ++i) {
      out_ += indent + "subgraph cluster_" + own + "_" + std::to_string(i) + " {\n" + indent + "  label=\"" +
              escape(node.kind_name()) + " block" + std::to_string(i) + "\";\n";
      block(*node.blocks()[i], indent + "  ");
      out_ += indent + "}\n";
    }
  }

  void edge(const GraphValue* from, const std::string& to, const std::string& indent) {
    if (from->constant()) return;
    out_ += indent + id(from) + " -> " + to + " [fontsize=8, label=\"" + escape(from->type()->str()) + "\"];\n";
  }

  static std::string shorten(const std::string& text) { return text.size() > 60 ? text.substr(0, 57) + "..." : text; }

  const std::string& id(const GraphValue* value) {
    std::string& source = sources_[value];
    if (source.empty()) source = "v" + std::to_string(next_++);
    return source;
  }

  std::string out_;
  std::map<const GraphValue*, std::string> sources_;
  int next_ = 0;
};

}  // namespace

std::string print_dot(const Graph& graph) { return DotPrinter().graph(graph); }

}  // namespace tensord::jit
