#pragma once

#include "core/jit/runtime/module.h"
#include "server/config/engine_options.h"
#include "server/config/model_config.h"

namespace tensord::server {

// Batches of all sizes keep their plans, each for two numbers of threads, unless the configuration says otherwise:
// plans that push each other out are made again and again.
EngineOptions with_room_for_batches(const EngineOptions& defaults, const ModelConfig& config);

// Throws Error that starts with the setting's name.
jit::LoadOptions to_load_options(const EngineOptions& options);

}  // namespace tensord::server
