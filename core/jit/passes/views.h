#pragma once

#include <optional>

#include "core/jit/ir/graph_builder.h"

namespace tensord::jit {

// Helpers of the passes over graphs with known shapes.

// The known shape of a tensor as a meta tensor, or the tensor itself if it is a constant; null if unknown.
const Tensor* known_tensor(const GraphValue* value);
// Returns a tensor that must be known. Throws Error{kInternal} if it is not.
const Tensor& known_tensor_of(const GraphValue* value);
// A number, or the element of a one-element constant tensor; empty if unknown.
std::optional<double> known_number(const GraphValue* value);

// Whether the node calls an operator of one of these names; false for null.
bool is_any_of(const Node* node, std::initializer_list<const char*> names);

// Adds calls with known shapes before a node.
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
  // Sets what is known about the results of a call from its arguments.
  static void set_known(Node* node);

 private:
  GraphBuilder builder_;
};

}  // namespace tensord::jit
