#pragma once

// Datasets, samplers, loaders.
#include "core/nn/data_loader.h"
#include "core/nn/dataset.h"
#include "core/nn/sampler.h"
