#pragma once

#include "core/jit/formats/format.h"

namespace tensord::jit {

// Models that somebody wrote: TorchScript source with weights beside it. See README.md here.
extern const ModelFormat kSourceFormat;

// What the format reads from a file, of a text: `place` names it in errors, an absolute path. The tensors are taken as
// they are.
LoadedModel compile_source(const std::string& place, const std::string& text,
                           const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
