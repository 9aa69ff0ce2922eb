#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/formats/graph_builder.h"
#include "core/jit/formats/module_tree.h"
#include "core/ops/call_observer.h"

namespace tensord::jit {

// A tensor of the traced model that keeps its name: "encoder.weight".
struct TracedWeight {
  std::string name;
  Tensor tensor;
  bool is_parameter = true;
  bool requires_grad = true;
};

// The operators that one run of a function called, as a graph: while it is the thread's call observer it writes down
// each call. Numbers are what they were in that run; tensors that are neither inputs nor weights are constants. Sizes
// that the function read as numbers hold for these inputs alone, so such a graph first checks the inputs' shapes. Holds
// every tensor that it saw until it goes. Not thread-safe.
class Trace final : public ops::CallObserver {
 public:
  Trace(std::vector<TracedWeight> weights, const std::vector<std::pair<std::string, Tensor>>& inputs);

  // Throws Error{kUnimplemented} for what no graph has: generators, writes to tensors that are constants.
  void called(const ops::Op& op, std::span<const ops::Value> arguments, std::span<const ops::Value> returns) override;
  void note_sizes_read() { are_sizes_read_ = true; }

  // Ends the graph with the function's result (tensors, and tuples, lists and dicts of them) and writes it as a
  // TorchScript archive. Call once. Throws Error as export_torchscript does.
  void save(const std::string& path, const ops::Value& result);

 private:
  GraphValue* value_of(const ops::Value& value, const ops::TypePtr& type);
  GraphValue* tensor_value(const Tensor& tensor);
  void returned(const ops::Value& value, GraphValue* output);
  void check_shapes();

  std::vector<TracedWeight> weights_;
  std::vector<std::pair<std::string, Tensor>> inputs_;
  std::vector<Dims> input_sizes_;  // as they were before the function ran
  ModuleTree tree_{"__torch__.Traced"};
  Graph graph_;
  GraphBuilder builder_{graph_};
  std::map<const TensorImpl*, GraphValue*> values_;
  std::map<const TensorImpl*, std::string> names_;  // of weights
  std::vector<ops::Value> seen_;                    // so that no address is used again
  bool are_sizes_read_ = false;
};

}  // namespace tensord::jit
