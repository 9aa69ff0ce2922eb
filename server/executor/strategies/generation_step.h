#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/executor/model/generation_options.h"
#include "server/executor/model/sequence_model.h"

namespace tensord::server {

// A request between two steps of generation.
struct GenerationRow {
  CorrelationId id;
  std::vector<InferTensor> inputs;    // of the request, except the fed-back input, which is that of the next step
  std::vector<size_t> input_indices;  // the input of request_signature() that each is
  SequenceState state;
  int64_t length = 0;  // positions that the model has seen
  int64_t steps = 0;   // completed
  int64_t max_steps = 1;

  // Outputs of the last step.
  std::vector<InferTensor> outputs = {};
  bool is_done = false;
};

// One step of iterative generation: which rows may run together, what the model gets, and how its results are stored. A
// row's tensors are views of the last batch, so the same rows in the same order need no copy for the next step.
// Immutable and thread-safe.
class GenerationStep {
 public:
  using Run = std::function<RunResult(std::span<const InferTensor* const>)>;

  // `signature` is the model's and must outlive this. Throws Error naming the field of an invalid configuration.
  GenerationStep(const std::string& model, const ModelConfig& config, const Signature& signature);

  const SequenceModel& model() const { return model_; }
  const GenerationOptions& options() const { return options_; }
  // Rows with equal keys may share a step.
  std::string key(const GenerationRow& row) const;
  // Runs the model for these rows and returns the number of bytes copied. Throws Error; the rows are then unchanged,
  // unless the model writes to its inputs.
  uint64_t run(std::span<GenerationRow* const> rows, const Run& run) const;

 private:
  struct Inputs;
  Inputs gather(std::span<GenerationRow* const> rows) const;
  void add_requests(std::span<GenerationRow* const> rows, Inputs& out) const;
  void add_states(std::span<GenerationRow* const> rows, Inputs& out) const;
  void add_lengths(std::span<GenerationRow* const> rows, Inputs& out) const;
  void add_controls(std::span<GenerationRow* const> rows, Inputs& out) const;
  Tensor stack_states(std::span<GenerationRow* const> rows, size_t state, uint64_t* copied_bytes) const;
  int64_t new_positions(const GenerationRow& row) const;
  InferTensor next_feedback(const std::vector<InferTensor>& outputs) const;
  bool is_end(const std::vector<InferTensor>& outputs, const InferTensor& feedback) const;
  bool pads() const { return !options_.length_input.empty(); }
  int64_t first_dim() const { return model_.has_batch_dimension() ? 1 : 0; }

  const std::string name_;
  const GenerationOptions options_;
  const SequenceModel model_;
  size_t feedback_input_ = SIZE_MAX;  // index in request_signature()
  size_t length_input_ = SIZE_MAX;    // index in the model's signature
  std::vector<int64_t> open_dims_;    // by state: its dimension of dynamic size; -1: none
};

}  // namespace tensord::server
