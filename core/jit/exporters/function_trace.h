#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/importers/module_tree.h"
#include "core/jit/ir/graph_builder.h"
#include "core/ops/call_observer.h"

namespace tensord::jit {

// A tensor of the traced model that keeps its name: "encoder.weight".
struct TracedWeight {
  std::string name;
  Tensor tensor;
  bool is_parameter = true;
  bool requires_grad = true;
};

// Metadata that a function may read from a tensor without an operator.
enum class TensorRead { kSizes, kRank, kDType, kStrides };

// Whether the operator reads sizes, strides, dtypes and so on of its tensors, but no elements.
bool reads_no_element(const ops::Op& op);

// Records the operators that one run of a function called as a graph, while it is the thread's call observer. Scalars
// keep their values in that run; tensors that are neither inputs nor weights are constants. Sizes, ranks, dtypes and
// strides that the function read are valid for such tensors only, so the graph checks them where they were read.
// Tensors are identified by their object: if an operator returns one of its arguments (contiguous, to), the function
// gets a new tensor object over the same memory, so that the two stay distinct. Keeps every tensor that it saw alive.
// Not thread-safe.
class Trace final : public ops::CallObserver {
 public:
  Trace(std::vector<TracedWeight> weights, const std::vector<std::pair<std::string, Tensor>>& inputs);

  // Throws Error{kUnimplemented} for what no graph has: generators, writes to tensors that are constants.
  void after(const ops::Op& op, std::span<const ops::Value> arguments, std::span<ops::Value> returns) override;
  // The function reads this of the tensor, as it is now.
  void record_read(const Tensor& tensor, TensorRead what);
  // Whether an operator returned elements as numbers: what the function did with them is lost.
  bool are_values_read() const { return are_values_read_; }

  // Ends the graph with the function's result (tensors, and tuples, lists and dicts of them) and writes it as a
  // TorchScript archive. Call once. Throws Error as export_torchscript does.
  void save(const std::string& path, const ops::Value& result);

 private:
  GraphValue* value_of(const ops::Value& value, const ops::TypePtr& type);
  GraphValue* tensor_value(const Tensor& tensor);
  void returned(const ops::Value& value, GraphValue* output);
  void check_written(const ops::Op& op, const Tensor& tensor) const;
  void number_returned(const ops::Op& op, const ops::Value& value, GraphValue* output);
  // Adds a check that refuses to run if `given` differs from `wanted`.
  void guard(GraphValue* given, const ops::Value& wanted, const std::string& message);

  std::vector<TracedWeight> weights_;
  std::vector<std::pair<std::string, Tensor>> inputs_;
  ModuleTree tree_{"__torch__.Traced"};
  Graph graph_;
  GraphBuilder builder_{graph_};
  std::map<const TensorImpl*, GraphValue*> values_;
  std::map<const TensorImpl*, std::string> names_;  // of weights
  std::vector<ops::Value> seen_;                    // keeps addresses unique
  std::set<std::pair<const TensorImpl*, TensorRead>> guarded_;
  std::set<const void*> constant_memory_;  // storages of constants
  bool are_values_read_ = false;
};

}  // namespace tensord::jit
