#pragma once

#include <optional>

#include "core/jit/ir/graph_builder.h"

namespace tensord::jit {

// What passes over graphs with known shapes share.

// What is known of a tensor, or null. Constants are themselves.
const Tensor* known_tensor(const GraphValue* value);
// The same of a tensor that must be known. Throws Error{kInternal} when it is not.
const Tensor& known_tensor_of(const GraphValue* value);
// A number, or the one element of a constant tensor; empty when it is not known.
std::optional<double> known_number(const GraphValue* value);

// Whether the node calls an operator of one of these names; false for null.
bool is_any_of(const Node* node, std::initializer_list<const char*> names);

// Adds calls before a node, with their shapes.
class ViewBuilder {
 public:
  explicit ViewBuilder(Node* before) : builder_(before) {}

  GraphValue* constant(ops::Value value);
  GraphValue* none() { return constant(ops::Value()); }
  GraphValue* ints(const Dims& values);
  GraphValue* reshape(GraphValue* value, const Dims& sizes);
  GraphValue* expand(GraphValue* value, const Dims& sizes);
  GraphValue* transpose(GraphValue* value, int64_t a, int64_t b);
  GraphValue* call(std::string_view op, std::initializer_list<GraphValue*> inputs);
  GraphValue* call(const ops::Op& op, std::span<GraphValue* const> inputs);
  // Fills in what is known of the results of a call from its arguments.
  static void set_known(Node* node);

 private:
  GraphBuilder builder_;
};

}  // namespace tensord::jit
