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

// A model with sequence_batching takes inputs that no client sends (controls, state) and returns outputs that none
// gets (state). The model itself knows all of them; requests see the rest.

// The signature without what the server fills and keeps. The same for other models.
Signature request_signature(const Signature& model, const ModelConfig& config);
// The server's tensors as a configuration has inputs and outputs; names of inputs are the model's own or end in its
// argument's number ("START__1").
ModelConfig server_tensors(const ModelConfig& config);

// The state of one sequence: one tensor for each that the configuration lists, each one row.
using SequenceState = std::vector<Tensor>;

// Fills the server's tensors of one model. Immutable and thread-safe.
class SequenceModel {
 public:
  struct State {
    std::string input_name, output_name;
    size_t input = 0;  // of the model's signature
    DType dtype = DType::kFloat32;
    Dims dims;             // of a row, with the batch dimension where there is one; -1: any size
    Tensor initial;        // one row, read-only
    bool is_sent = false;  // an output of the model, too
  };
  // What the controls tell of a row.
  struct RowControls {
    const CorrelationId* sequence = nullptr;  // null: nothing has the row
    bool is_start = false, is_end = false, is_ready = false;
  };

  // `signature` is the model's own, and outlives this. Throws Error for what cannot be, naming the field.
  SequenceModel(std::string model, const ModelConfig& config, const Signature& signature);

  bool has_batch_dimension() const { return signature_.max_batch_size > 0; }
  size_t max_rows() const { return has_batch_dimension() ? static_cast<size_t>(signature_.max_batch_size) : 1; }
  bool has_ready_control() const;
  const Signature& signature() const { return signature_; }                  // of the model
  const Signature& request_signature() const { return request_signature_; }  // as requests see it
  const std::vector<State>& states() const { return states_; }
  SequenceState initial_state() const;
  // The input of the model's signature that input `index` of a request's is.
  size_t model_input(size_t index) const { return model_inputs_[index]; }
  size_t input_named(const std::string& name) const;  // of the model's signature; Error{kInvalidArgument} if none

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
