#pragma once

// Optimisers and learning rate schedules.
#include "tensord/tensor.h"
//
#include "core/nn/lr_scheduler.h"
#include "core/nn/optimizer.h"
