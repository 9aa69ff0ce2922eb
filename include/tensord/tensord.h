#pragma once

// Includes the whole engine. Most programs that need only a part include ops.h and operators.h.
#include "tensord/allocator.h"
#include "tensord/arguments.h"
#include "tensord/autograd.h"
#include "tensord/cuda.h"
#include "tensord/data.h"
#include "tensord/distributed.h"
#include "tensord/index.h"
#include "tensord/jit.h"
#include "tensord/nn.h"
#include "tensord/operators.h"
#include "tensord/ops.h"
#include "tensord/optim.h"
#include "tensord/random.h"
#include "tensord/serialize.h"
#include "tensord/tensor.h"
#include "tensord/vision.h"
