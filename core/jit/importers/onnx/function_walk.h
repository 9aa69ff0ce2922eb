#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/jit/importers/onnx/operator_library.h"

namespace tensord::jit::onnx {

// What is known about a value before any request: a number, string or list itself; a tensor with its elements if the
// file has them and they are few, otherwise as a meta tensor.
struct Known {
  std::optional<ops::Value> value;
  bool is_given = false;                                 // if unknown: it is not None
  std::shared_ptr<const std::vector<Known>> items = {};  // of a tuple
};

// Maximum number of tensor elements that are tracked.
constexpr int64_t kMaxKnownElements = 256;

// Interprets a function of the library with what is known about its arguments. Everything else is unknown; a branch on
// an unknown value ends the walk, and so does a very long function.
class FunctionWalk {
 public:
  explicit FunctionWalk(const OperatorLibrary& library) : library_(library) {}

  // Returns the function's result. Throws Error{kDataLoss} if every run with such arguments fails.
  Known call(const Function& function, std::vector<Known> arguments);
  // Does the same for a single node without blocks that is not a call.
  std::vector<Known> node(const Node& node, std::vector<Known> inputs);

 private:
  using Places = std::vector<Known>;  // indexed by the value's number in its graph

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
