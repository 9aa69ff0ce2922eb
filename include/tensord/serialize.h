#pragma once

// Tensor files: torch.save's format and safetensors.
#include "tensord/tensor.h"
//
#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"
