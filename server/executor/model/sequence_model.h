#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"

namespace tensord::server {

// A model with sequence_batching has inputs that no client sends (controls and state) and outputs that no client gets
// (state). Requests see the others only.

// The signature without controls and state; equal to `model` for models without sequence_batching.
Signature request_signature(const Signature& model, const ModelConfig& config);
// Controls and state as configured inputs and outputs. An input's name is the model's own or ends in its argument's
// number ("START__1").
ModelConfig server_tensors(const ModelConfig& config);

// The state of one sequence: one tensor of one row per configured state.
using SequenceState = std::vector<Tensor>;

// Provides controls and state for one model. Immutable and thread-safe.
class SequenceModel {
 public:
  struct State {
    std::string input_name, output_name;
    size_t input = 0;  // index in the model's signature
    DType dtype = DType::kFloat32;
    Dims dims;             // of one row, with the batch dimension if there is one; -1: any size
    Tensor initial;        // one row, read-only
    bool is_sent = false;  // also returned to clients
  };
  // The values of the control inputs for one row.
  struct RowControls {
    const CorrelationId* sequence = nullptr;  // null: the row is free
    bool is_start = false, is_end = false, is_ready = false;
  };

  // `signature` is the model's and must outlive this. Throws Error naming the field of an invalid configuration.
  SequenceModel(std::string model, const ModelConfig& config, const Signature& signature);

  bool has_batch_dimension() const { return signature_.max_batch_size > 0; }
  size_t max_rows() const { return has_batch_dimension() ? static_cast<size_t>(signature_.max_batch_size) : 1; }
  bool has_ready_control() const;
  const Signature& signature() const { return signature_; }                  // of the model
  const Signature& request_signature() const { return request_signature_; }  // as requests see it
  const std::vector<State>& states() const { return states_; }
  SequenceState initial_state() const;
  // Maps an input of the request's signature to the model's.
  size_t model_input(size_t index) const { return model_inputs_[index]; }
  size_t input_named(
      const std::string& name) const;  // in the model's signature; Error{kInvalidArgument} if there is none

  // Appends the control inputs for these rows to `inputs`, and to `indices` which of the model's they are.
  // Throws Error{kInvalidArgument} for a correlation id that the control's type cannot hold.
  void add_controls(std::span<const RowControls> rows, std::vector<InferTensor>& inputs,
                    std::vector<size_t>& indices) const;
  // Throws Error{kInvalidArgument} for a correlation id that the control's type cannot hold.
  void check_correlation_id(const CorrelationId& id) const;

  // Takes the state out of what the model returned for `rows` rows, and out of `outputs` what requests do not see.
  // A state that the next run may write to is in memory that nothing else reads, as long as make_state()'s inputs are:
  // it is left where it was among the `inputs` of this run, or else copied, which counts in *copied_bytes.
  // Throws Error{kFailedPrecondition} when it is missing or not as configured.
  std::vector<Tensor> take_states(std::vector<InferTensor>& outputs, size_t rows, std::span<const InferTensor> inputs,
                                  uint64_t* copied_bytes) const;

 private:
  struct Control {
    SequenceBatchingConfig::Control config;
    DataType datatype;
    size_t input = 0;
  };
  void add_state(const SequenceBatchingConfig::State& config, const ModelConfig& model);
  InferTensor control_tensor(const Control& control, std::span<const RowControls> rows) const;
  void check_state(const State& state, const InferTensor& output, size_t rows) const;
  void set_apart(std::vector<Tensor>& states, std::vector<InferTensor>& outputs, std::span<const InferTensor> inputs,
                 uint64_t* copied_bytes) const;

  const std::string model_;
  const Signature& signature_;
  const Signature request_signature_;
  std::vector<size_t> model_inputs_;
  std::vector<Control> controls_;
  std::vector<State> states_;
};

}  // namespace tensord::server
