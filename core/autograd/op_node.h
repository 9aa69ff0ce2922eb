#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/node.h"
#include "core/autograd/op_info.h"
#include "core/ops/value.h"

namespace tensord::autograd {

// Whether a result is a list of tensors: then each item is a result of the node, a tensor or None.
bool is_tensor_list(const ops::Value& value);

// The backward of one call of an operator: the gradient from its record, and the values that it reads.
class OpNode final : public Node {
 public:
  explicit OpNode(const OpInfo& info) : info_(info) {}

  // Called before the operator: stores edges to the nodes that computed the arguments, and the values to keep. Bits of
  // `written` are arguments that the call overwrites: the elements of its target are copied if the gradient reads them;
  // others (running statistics) may change and are not checked. Bits of `requiring` are arguments that require a
  // gradient.
  void save_inputs(std::span<const ops::Value> arguments, uint64_t requiring, uint64_t written);
  // Called after it; results must have been added.
  void save_outputs(std::span<const ops::Value> returns);

  std::string name() const override { return info_.node_name; }
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override;

 private:
  struct Version {
    uint8_t argument;  // or result
    bool is_output;
    uint32_t item;  // within a list
    uint32_t version;
  };
  // Saved by hooks: inputs_ or outputs_ has a meta tensor in its place.
  struct Packed {
    size_t argument;  // or result
    bool is_output;
    size_t item;  // within a list
    PackedTensor tensor;
  };
  void unpack_into(std::vector<ops::Value>& inputs, std::vector<ops::Value>& outputs) const;
  ops::Value pack(const Tensor& tensor, size_t argument, bool is_output, size_t item);
  ops::Value keep(const Tensor& tensor, size_t argument, size_t item, bool is_written);
  ops::Value keep_list(const ops::Value& list, size_t argument);
  ops::Value keep_output(const Tensor& tensor, size_t output, size_t item, uint32_t result);
  void check_versions() const;
  uint64_t needed_arguments() const;
  // The saved results, with their history if the pass itself is recorded.
  std::vector<ops::Value> outputs_with_history(std::span<const ops::Value> outputs) const;
  std::vector<Tensor> by_edge(std::vector<ops::Value> gradients) const;

  const OpInfo& info_;
  uint64_t saved_inputs_ = 0, saved_outputs_ = 0;  // bits of values kept with their elements
  const StorageImpl* target_ = nullptr;            // the storage that the call writes; only compared
  bool keeps_elements_ = false, is_released_ = false;
  InlineVector<ops::Value, 4> inputs_;
  InlineVector<ops::Value, 1> outputs_;
  InlineVector<Version, 2> versions_;            // of values kept with their elements
  std::unique_ptr<std::vector<Packed>> packed_;  // null: no hooks
};

}  // namespace tensord::autograd
