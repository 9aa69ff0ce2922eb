#pragma once

#include <memory>

#include "server/config/engine_options.h"
#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/executor/model/model_files.h"

namespace tensord::server {

// Loads a model as load_torchscript_model does. If the configuration has parameters "image_...", one of its inputs is
// of image files, which a run decodes, resizes and normalizes, one after the other. Throws Error naming the parameter
// that is wrong.
std::unique_ptr<const Model> load_image_model(const ModelFiles& files, const ModelConfig& config,
                                              const EngineOptions& defaults = {});

}  // namespace tensord::server
