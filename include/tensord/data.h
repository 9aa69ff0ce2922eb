#pragma once

// Datasets, samplers, data loaders, and files of numbers. vision.h has images.
#include "tensord/tensor.h"
//
#include "core/files/csv.h"
#include "core/files/idx.h"
#include "core/files/table.h"
#include "core/nn/data/data_loader.h"
#include "core/nn/data/dataset.h"
#include "core/nn/data/sampler.h"
