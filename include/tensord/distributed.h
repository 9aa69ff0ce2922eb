#pragma once

// Several processes that train one model.
#include "core/distributed/launch/environment.h"
#include "core/nn/distributed.h"
#include "core/nn/distributed_sampler.h"
