#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// Writes a method's graph as TorchScript, as PyTorch writes the code of an archive. Constant tensors and packed weights
// become attributes of the model, which print() collects.
class SourcePrinter {
 public:
  explicit SourcePrinter(const ops::ObjectPtr& self);
  // The method, indented as a member of a class; `self_type` is the class's qualified name. Throws
  // Error{kUnimplemented} naming an operator that TorchScript cannot express and its source location.
  std::string print(const std::string& name, const ops::Schema& schema, const Graph& graph,
                    const std::string& self_type);
  // Attributes that the code reads, by name.
  const std::map<std::string, ops::Value>& constants() const { return constants_; }

 private:
  void block(const Block& block, int depth);
  void node(const Node& node, int depth);
  void op(const Node& node, int depth);
  void branch(const Node& node, int depth);
  void loop(const Node& node, int depth);
  void line(int depth, const std::string& text);
  void define(const GraphValue* value, std::string text) { texts_[value] = std::move(text); }
  std::string assigned(const GraphValue* value);
  std::string text(const GraphValue* value) const;
  std::string constant(const ops::Value& value, const ops::TypePtr& type);
  std::string unpacked(const Node& node);
  std::string call(const Node& node);

  std::string out_;
  std::map<const GraphValue*, std::string> texts_;
  std::map<std::string, ops::Value> constants_;
  std::map<const ops::Object*, std::string> modules_;  // the expression for each module
};

// The expression for an attribute of an object.
std::string attribute_text(const std::string& owner, const std::string& name);
bool is_identifier(const std::string& name);

}  // namespace tensord::jit
