#pragma once

// Optimizers and learning rate schedulers.
#include "tensord/tensor.h"
//
#include "core/nn/optim/lr_scheduler.h"
#include "core/nn/optim/optimizer.h"
