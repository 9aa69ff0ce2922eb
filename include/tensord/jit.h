#pragma once

// Loads, runs, trains and saves model files, and saves modules as model files.
#include "tensord/tensor.h"
//
#include "core/api/trace.h"
#include "core/jit/runtime/module.h"
