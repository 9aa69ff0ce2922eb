#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/vision/preprocess.h"
#include "server/config/model_config.h"
#include "server/config/model_parameter.h"

namespace tensord::server {

// How an input is made of image files: the parameters "image_..." of config.pbtxt.
struct ImageInputOptions {
  std::string input;  // empty: the only input of the model
  vision::PreprocessOptions preprocess;
  bool has_batch_dimension = true;  // the model takes [images, …]; false: one image
};

// None if no parameter starts with "image_". Throws Error{kInvalidArgument} that names the parameter.
std::optional<ImageInputOptions> image_input_options(const ModelConfig& config);

// The parameters that image_input_options() reads.
std::vector<ModelParameter> image_parameters();

}  // namespace tensord::server
