#pragma once

#include "core/jit/importers/format.h"

namespace tensord::jit {

// Programs of torch.export.save. See README.md here.
extern const ModelFormat kPt2Format;

}  // namespace tensord::jit
