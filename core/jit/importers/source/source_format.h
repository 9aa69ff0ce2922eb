#pragma once

#include "core/jit/importers/format.h"

namespace tensord::jit {

// Hand-written models: TorchScript source with weights in a file beside it. See README.md in this folder.
extern const ModelFormat kSourceFormat;

// Compiles source text. `place` is its absolute path in errors. The tensors are used without a copy.
LoadedModel compile_source(const std::string& place, const std::string& text,
                           const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
