#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/executor/model/generation_options.h"
#include "server/executor/model/sequence_model.h"

namespace tensord::server {

// A request between two steps.
struct GenerationRow {
  CorrelationId id;
  std::vector<InferTensor> inputs;    // the request's; the fed back one is what the next step gets
  std::vector<size_t> input_indices;  // which of request_signature() each of them is
  SequenceState state;
  int64_t length = 0;  // positions that the model has seen
  int64_t steps = 0;   // done
  int64_t max_steps = 1;

  // Of the last step.
  std::vector<InferTensor> outputs = {};
  bool is_done = false;
};

// What one step of a model is: which rows may take it together, what the model is given, and what becomes of what it
// returns. A row's tensors lie in those of the last batch, so that the same rows in the same order are the next one
// without a copy. Immutable and thread-safe.
class GenerationStep {
 public:
  using Run = std::function<RunResult(std::span<const InferTensor* const>)>;

  // `signature` is the model's own, and outlives this. Throws Error for what cannot be, naming the field.
  GenerationStep(const std::string& model, const ModelConfig& config, const Signature& signature);

  const SequenceModel& model() const { return model_; }
  const GenerationOptions& options() const { return options_; }
  // Rows that have the same may share a step.
  std::string key(const GenerationRow& row) const;
  // Runs the model for these rows. Throws Error, then they are as before, unless the model writes to its inputs.
  // Gives back the bytes that were copied.
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
  size_t feedback_input_ = SIZE_MAX;  // of request_signature()
  size_t length_input_ = SIZE_MAX;    // of the model's signature
  std::vector<int64_t> open_dims_;    // of each state: the dimension of any size; -1: none
};

}  // namespace tensord::server
