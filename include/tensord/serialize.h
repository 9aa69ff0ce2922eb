#pragma once

// Files of tensors: torch.save's, and safetensors.
#include "tensord/tensor.h"
//
#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"
