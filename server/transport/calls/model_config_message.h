#pragma once

#include "protos/model_config.pb.h"
#include "server/executor/model/model_version.h"

namespace tensord::server {

// The effective configuration of a model: config.pbtxt, completed by what the model's file and the server know. Unknown
// names, types and shapes are left out.
inference::ModelConfig to_model_config(const ModelVersion& model);

}  // namespace tensord::server
