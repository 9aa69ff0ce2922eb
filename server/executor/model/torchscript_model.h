#pragma once

#include <memory>
#include <string>

#include "core/jit/runtime/module.h"
#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/executor/model/model_files.h"

namespace tensord::server {

// Loads a TorchScript archive and serves its `forward`. The inputs have the names of the method's arguments, and also
// accept INPUT__0 …; `config` overrides names and adds types and shapes. Tensors are passed to Tensor arguments;
// one-element tensors to int, float and bool; BYTES to str and List[str]; vectors to List[int], List[float] and
// List[bool]. Throws Error with the reason if the model cannot be loaded or an argument cannot come from a request.
// `defaults` apply where the configuration gives no value.
std::unique_ptr<const Model> load_torchscript_model(const ModelFiles& files, const ModelConfig& config,
                                                    const EngineOptions& defaults = {});

// One copy of the model, on the device of the options.
std::unique_ptr<Model> make_torchscript_model(const std::string& file, const ModelConfig& config,
                                              const jit::LoadOptions& options);

// Throws Error{kInvalidArgument} that names the flag.
void check_engine_options(const EngineOptions& options);

}  // namespace tensord::server
