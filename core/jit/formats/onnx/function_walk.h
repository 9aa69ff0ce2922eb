#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/jit/formats/onnx/operator_library.h"

namespace tensord::jit::onnx {

// What is known of a value before any request is there: a number, text or list as itself, a tensor by its elements
// where the file has them and they are few, else as a meta tensor.
struct Known {
  std::optional<ops::Value> value;
  bool is_given = false;                                 // of what is not known: it is not None
  std::shared_ptr<const std::vector<Known>> items = {};  // of a tuple
};

// Elements of a tensor that are looked at.
constexpr int64_t kMaxKnownElements = 256;

// Goes through a function of the library as the interpreter would, on what is known of its arguments. What depends on
// something else is not known; a branch that does ends the walk, and so do very long ones.
class FunctionWalk {
 public:
  explicit FunctionWalk(const OperatorLibrary& library) : library_(library) {}

  // The function's result. Throws Error{kDataLoss} where each run on such arguments fails.
  Known call(const Function& function, std::vector<Known> arguments);
  // The same for one node without blocks that is no call.
  std::vector<Known> node(const Node& node, std::vector<Known> inputs);

 private:
  using Places = std::vector<Known>;  // by the value's number in its graph

  Known body(const Function& function, std::vector<Known> arguments);
  void block(Places& places, const Block& block);
  void step(Places& places, const Node& node);
  void if_node(Places& places, const Node& node);
  void loop(Places& places, const Node& node);
  std::vector<Known> op(const Node& node, const std::vector<Known>& inputs);
  void count_step();

  const OperatorLibrary& library_;
  int steps_ = 0, all_steps_ = 0, depth_ = 0;
};

}  // namespace tensord::jit::onnx
