#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/jit/ir/graph_builder.h"
#include "core/ops/call_observer.h"

namespace tensord::jit {

// Records one run of a training step, forward and backward, as a graph without writes: while it is the thread's compute
// observer, it records each operator below autograd. A write to memory becomes a new value; the final contents of the
// inputs' memory are results. Sizes, numbers and branches are those of this run, so a graph is valid only for inputs of
// the same shapes, and only if another run of the step on other data gave the same graph (`is_same_program`).
//
// Keeps nothing alive but handles without memory and constants. Not thread-safe.
class StepRecording final : public ops::CallObserver {
 public:
  // `inputs` are the graph's inputs, in this order. `lasting` are lists and dicts that outlive the step, by identity; a
  // step that modifies one of them is refused. Tensors that are neither inputs nor made by an operator are constants;
  // without `takes_constants`, only scalars that the step itself made are, and others are refused.
  explicit StepRecording(std::span<const Tensor> inputs, std::set<const void*> lasting = {},
                         bool takes_constants = true);
  ~StepRecording() override;

  // Throw nothing: what cannot be a graph makes the recording refused, and the step goes on.
  void before(const ops::Op& op, std::span<const ops::Value> arguments) override;
  void after(const ops::Op& op, std::span<const ops::Value> arguments, std::span<ops::Value> returns) override;
  void refuse(std::string reason);
  void add_lasting(const std::set<const void*>& containers) { lasting_.insert(containers.begin(), containers.end()); }
  // Why there is no graph: "aten::item reads an element"; empty if there is one.
  const std::string& refusal() const { return refusal_; }

  // Ends the recording: the graph returns a tuple of `results` (without undefined ones), then the new value of each
  // input whose memory was written. REQUIRES: the caller holds no other tensor of the step.
  void finish(std::span<const Tensor> results);
  // After finish(): the inputs that were written, in the order of the results.
  const std::vector<size_t>& written_inputs() const { return written_; }
  std::unique_ptr<Graph> take_graph() { return std::move(graph_); }
  // Whether both runs called the same operators with the same numbers; `why_not` receives the difference.
  bool is_same_program(const StepRecording& other, std::string& why_not) const;

 private:
  // A tensor's position in its memory.
  struct Layout {
    Dims sizes, strides;
    int64_t offset = 0;
    DType dtype = DType::kFloat32;
    bool operator==(const Layout&) const = default;
  };
  struct View {
    Layout layout;
    GraphValue* value;
  };
  // The current contents of a storage. The first view is the whole storage.
  struct Memory {
    std::vector<View> views;
    uint32_t generation = 0;  // number of writes
    int input = -1;
    bool is_shared = false;  // by several inputs
    bool is_from_outside = false;
    bool is_written = false;
  };
  struct Known {
    GraphValue* value = nullptr;
    uint32_t generation = 0;
    Tensor handle;  // loses its memory when nobody else refers to it
    const StorageImpl* storage = nullptr;
  };
  // A tensor that no operator made.
  struct Outside {
    Tensor tensor;
    const ops::Op* reader;
  };

  static Layout layout_of(const Tensor& tensor);
  void record(const ops::Op& op, std::span<const ops::Value> arguments, std::span<const ops::Value> returns);
  void record_host(const ops::Op& op, std::span<const ops::Value> arguments, std::span<const ops::Value> returns);
  void record_write(const ops::Op& op, std::span<const ops::Value> arguments);
  void record_copy(std::span<const ops::Value> arguments);
  void record_conv_backward(std::span<const ops::Value> arguments, std::span<const ops::Value> returns);
  void record_batch_norm(const ops::Op& op, std::span<const ops::Value> arguments, std::span<const ops::Value> returns);
  void record_in_place(const ops::Op& op, std::span<const ops::Value> arguments);
  bool fold(const ops::Op& op, std::span<const ops::Value> arguments, std::span<const ops::Value> returns);

  GraphValue* value_of(const ops::Value& value, const ops::TypePtr& type);
  GraphValue* tensor_value(const Tensor& tensor);
  GraphValue* derive(Memory& memory, const Tensor& tensor);
  void define(const ops::Value& value, GraphValue* output);
  void know(const Tensor& tensor, GraphValue* value);
  // Sets the value of the memory behind `target`. `value` has the target's sizes, strides and dtype.
  void write(const Tensor& target, GraphValue* value);
  GraphValue* with_layout(GraphValue* value, const Tensor& of, const Tensor& target);
  void note(int64_t word) { log_.push_back(word); }
  void record_value(const ops::Value& value);
  // Releases memory that nobody else holds.
  void sweep();
  void check_nothing_stays(std::span<const Tensor> results);
  void check_constants();

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  GraphBuilder builder_{*graph_};
  std::set<const void*> lasting_;
  const bool takes_constants_;
  std::unordered_map<const TensorImpl*, Known> known_;
  std::unordered_map<const StorageImpl*, Memory> memory_;
  std::vector<const TensorImpl*> live_;  // entries of known_ whose tensor object has memory
  std::vector<Outside> outside_;
  std::vector<ops::Value> folded_;  // constants that the step computed
  std::vector<Tensor> inputs_;
  std::vector<size_t> written_;
  std::vector<int64_t> log_;
  std::string refusal_;
  const ops::Op* reader_ = nullptr;  // operator whose arguments are being looked up
  uint64_t reads_ = 0;
  size_t next_sweep_ = 64;
};

}  // namespace tensord::jit
