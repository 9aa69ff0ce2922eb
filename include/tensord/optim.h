#pragma once

// Optimizers and learning rate schedules.
#include "tensord/tensor.h"
//
#include "core/nn/optim/lr_scheduler.h"
#include "core/nn/optim/optimizer.h"
