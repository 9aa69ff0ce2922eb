#pragma once

#include "protos/model_config.pb.h"
#include "server/executor/model/model_version.h"

namespace tensord::server {

// The configuration that a model runs with: what config.pbtxt says, completed by what the model itself and the server
// know. Names, types and shapes that nothing says stay out.
inference::ModelConfig to_model_config(const ModelVersion& model);

}  // namespace tensord::server
