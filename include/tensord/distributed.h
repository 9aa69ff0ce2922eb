#pragma once

// Training of one model by several processes or on several devices.
#include "tensord/tensor.h"
//
#include "core/distributed/launch/environment.h"
#include "core/nn/data/distributed_sampler.h"
#include "core/nn/data_parallel.h"
#include "core/nn/distributed.h"
