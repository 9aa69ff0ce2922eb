#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/formats/onnx/operator_library.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::onnx {

// Puts bodies of the library's functions into a graph, calls of theirs in place. What follows from constant arguments
// (numbers, texts, None, lists that nobody writes, shapes of weights) is worked out on the way: a node of the model has
// few attributes that matter, and its function asks about all of them. A `raise` that every run would come to is the
// error of the call: nobody should be told at the first request what is known before.
class BodyCopier {
 public:
  // `tensor_of` gives the tensor that a value of the graph is known to have, an undefined one for others; only its
  // shape and type count, and the elements of constants.
  BodyCopier(GraphBuilder& builder, const OperatorLibrary& library, std::function<Tensor(const GraphValue*)> tensor_of)
      : builder_(builder), library_(library), tensor_of_(std::move(tensor_of)) {}

  // The function's result for these arguments, at the end of the block that is built.
  GraphValue* call(const Function& function, std::span<GraphValue* const> arguments);

 private:
  // What a value of a function's graph is here: a value of the graph, or known and not there yet.
  struct Place {
    GraphValue* value = nullptr;
    std::optional<ops::Value> known;
    bool of_tensor = false;  // known by a tensor's shape or elements, not by attributes alone
  };
  // One body.
  struct Frame {
    std::unordered_map<const GraphValue*, Place> places;
    bool writes_lists = false;  // then none is taken as known
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
  bool is_in_branch_ = false;  // of the model's own
  int unknown_ways_ = 0;       // blocks around what is copied that a run may not come to
  int ways_of_tensors_ = 0;    // those that are taken by what is known of tensors
};

}  // namespace tensord::jit::onnx
