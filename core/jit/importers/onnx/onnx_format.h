#pragma once

#include "core/jit/importers/format.h"

namespace tensord::jit::onnx {

// ONNX, opsets 6 to 28, IR version up to 14.
extern const ModelFormat kOnnxFormat;

}  // namespace tensord::jit::onnx
