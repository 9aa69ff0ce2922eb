#pragma once

// Optimisers and learning rate schedules.
#include "tensord/tensor.h"
//
#include "core/nn/optim/lr_scheduler.h"
#include "core/nn/optim/optimizer.h"
