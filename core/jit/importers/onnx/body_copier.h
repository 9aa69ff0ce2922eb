#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/importers/onnx/operator_library.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::onnx {

// Copies bodies of the library's functions into a graph, inlining their calls. Everything that follows from constant
// arguments (numbers, strings, None, lists that are not written, shapes of weights) is evaluated on the way: functions
// check all attributes, of which a node has few. A `raise` that every run would reach becomes an error of the call, so
// that it is reported at load and not at the first request.
class BodyCopier {
 public:
  // `tensor_of` returns the tensor that a value is known to have, or an undefined tensor. Only its shape and type are
  // used, and the elements of constants.
  BodyCopier(GraphBuilder& builder, const OperatorLibrary& library, std::function<Tensor(const GraphValue*)> tensor_of)
      : builder_(builder), library_(library), tensor_of_(std::move(tensor_of)) {}

  // Appends the function's body to the current block and returns its result.
  GraphValue* call(const Function& function, std::span<GraphValue* const> arguments);

 private:
  // The counterpart of a value of a function's graph: a value of the new graph, or a known value that is not in the
  // graph yet.
  struct Place {
    GraphValue* value = nullptr;
    std::optional<ops::Value> known;
    bool of_tensor = false;  // known from a tensor's shape or elements, not from attributes only
  };
  // One function body.
  struct Frame {
    std::unordered_map<const GraphValue*, Place> places;
    bool writes_lists = false;  // if set, no list counts as known
  };

  Place body(const Function& function, std::vector<Place> arguments);
  void block(Frame& frame, const Block& source);
  void node(Frame& frame, const Node& node);
  void copy(Frame& frame, const Node& node);
  void copy_blocks(Frame& frame, const Node& node, Node* made);
  bool fold(Frame& frame, const Node& node);
  bool fold_op(Frame& frame, const Node& node);
  void refuse(const Frame& frame, const Node& raise) const;
  bool fold_none_check(Frame& frame, const Node& node);
  Place place_of(GraphValue* value) const;
  GraphValue* use(const Place& place, const ops::TypePtr& type);
  GraphValue* use(Frame& frame, const GraphValue* source);

  GraphBuilder& builder_;
  const OperatorLibrary& library_;
  std::function<Tensor(const GraphValue*)> tensor_of_;
  int depth_ = 0;
  bool is_in_branch_ = false;  // of the model itself
  int unknown_ways_ = 0;       // enclosing blocks that a run may not reach
  int ways_of_tensors_ = 0;    // those selected by knowledge about tensors
};

}  // namespace tensord::jit::onnx
