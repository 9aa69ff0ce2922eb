#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/config/model_parameter.h"

namespace tensord::server {

// How the server runs the steps of a request to a model with sequence_batching.iterative_sequence: the parameters
// "generation_..." of config.pbtxt.
struct GenerationOptions {
  // With `feedback_output`, this output of each step becomes `feedback_input` of the next step (the tokens of a
  // decoder). Without it every step gets the request's inputs again. "generation_input", "generation_output".
  std::string feedback_input, feedback_output;
  // An output that is not 0 for finished rows. "generation_end_output".
  std::string end_output;
  // The value of feedback_output that ends a row. "generation_end_token".
  std::optional<int64_t> end_token;
  // The most steps of a request; its parameter "max_tokens" may set a lower limit. "generation_max_steps".
  int64_t max_steps = 256;
  // An INT64 input of shape [rows, 1] with the number of valid positions of each row, including those of this step.
  // With it, rows of different lengths share a batch: feedback_input and the dimensions -1 of states are padded with
  // zeros at the front, so the last positions are the valid ones. "generation_length_input".
  std::string length_input;
};

// All empty for models that do not generate. Throws Error{kInvalidArgument} naming the parameter.
GenerationOptions generation_options(const ModelConfig& config);

// The parameters that generation_options() reads.
std::vector<ModelParameter> generation_parameters();

// The names of sequence_batching settings that do not apply to a generating model: batches do not wait to fill, and a
// sequence is one request.
std::string unused_settings(const SequenceBatchingConfig& config);

}  // namespace tensord::server
