#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/config/model_parameter.h"

namespace tensord::server {

// How a request to a model with sequence_batching.iterative_sequence goes from step to step: the parameters
// "generation_..." of config.pbtxt.
struct GenerationOptions {
  // With `feedback_output`: an output of each step is this input of the next, instead of the request's (a decoder's
  // tokens). Without: every step gets the request's inputs again. "generation_input", "generation_output".
  std::string feedback_input, feedback_output;
  // An output that is not 0 for rows that are done. "generation_end_output".
  std::string end_output;
  // A value of feedback_output with which a row is done. "generation_end_token".
  std::optional<int64_t> end_token;
  // Steps of a request at most; its own parameter "max_tokens" may ask for fewer. "generation_max_steps".
  int64_t max_steps = 256;
  // An input of type INT64 and shape [rows, 1]: how many positions of a row count, those of this step among them. With
  // it, rows of different lengths share a batch: feedback_input and the states' dims of -1 are filled up with zeros at
  // their fronts, so that the last positions are the valid ones. "generation_length_input".
  std::string length_input;
};

// All empty for models that do not generate. Throws Error{kInvalidArgument} naming the parameter.
GenerationOptions generation_options(const ModelConfig& config);

// What `generation_options` reads.
std::vector<ModelParameter> generation_parameters();

// The settings of sequence_batching that a model that generates has no use for, by their names: a batch is what runs,
// nothing waits for it to fill, and a sequence is one request.
std::string unused_settings(const SequenceBatchingConfig& config);

}  // namespace tensord::server
