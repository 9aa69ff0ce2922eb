#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/ops/call_observer.h"

namespace tensord::jit {

// A linear layer of a graph, and what became of it.
struct QuantizedLayer {
  std::string weight;  // its name in the model; empty if the weight is no parameter or buffer
  int64_t outputs = 0, inputs = 0;
  std::string kept_because;  // why it stays in float32; empty: it has 8 bits now
};

struct QuantizedLinears {
  std::vector<QuantizedLayer> layers;  // in the order of their calls
  // Weights and biases that nothing in the graph reads any more.
  std::set<const TensorImpl*> unused;
};

// The smallest and the largest of some values, and 0; NaN is only noted.
struct ValueRange {
  float min = 0, max = 0;
  bool has_nan = false;
  void add(const Tensor& values);
};

// Sees the calls of aten::linear of a module that runs as written, and keeps the ranges of inputs and outputs by
// weight. For Functionality::kTracer.
class LinearRanges final : public ops::CallObserver {
 public:
  struct Layer {
    ValueRange input, output;
  };
  using ByName = std::map<std::string, Layer>;
  void after(const ops::Op& op, std::span<const ops::Value> arguments, std::span<ops::Value> returns) override;
  // Of the layers that were called and whose weights have names.
  ByName by_name(const std::map<const TensorImpl*, std::string>& names) const;

 private:
  std::map<const TensorImpl*, Layer> layers_;
};

// Replaces aten::linear with float32 weights of the model by quantized::linear_dynamic, with the numbers of PyTorch's
// quantize_dynamic with per_channel_dynamic_qconfig: weights of 8 bits with a scale for each output, without a zero
// point; inputs rounded to 7 bits by one scale for the whole input, when the layer runs. With `ranges` by
// quantized::linear: inputs have 7 bits and outputs 8 bits of the measured ranges. `names` are those of the model's
// tensors; a layer whose weight `is_skipped` accepts stays. `self` is the graph's first input.
QuantizedLinears quantize_linears(Graph& graph, const ops::ObjectPtr& self,
                                  const std::map<const TensorImpl*, std::string>& names,
                                  const std::function<bool(const std::string& weight)>& is_skipped,
                                  const LinearRanges::ByName* ranges = nullptr);

}  // namespace tensord::jit
