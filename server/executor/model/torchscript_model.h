#pragma once

#include <memory>
#include <string>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/executor/model/model_files.h"

namespace tensord::server {

// Loads a TorchScript archive and serves its `forward`. Inputs are named after the method's
// arguments, and answer to INPUT__0 … as well; `config` overrides names and adds types and
// shapes. Tensors feed Tensor arguments; one-element tensors feed int, float and bool; BYTES
// feed str and List[str]; vectors feed List[int], List[float] and List[bool]. Throws Error
// with the reason when the model cannot be loaded, or an argument cannot come from a request.
// `defaults` hold where the configuration does not say.
std::unique_ptr<const Model> load_torchscript_model(const ModelFiles& files, const ModelConfig& config,
                                                    const EngineOptions& defaults = {});

// Throws Error{kInvalidArgument} that names the flag.
void check_engine_options(const EngineOptions& options);

}  // namespace tensord::server
