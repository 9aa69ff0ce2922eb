#pragma once

// Models from files: load, run, train, save; and modules as such files.
#include "tensord/tensor.h"
//
#include "core/api/trace.h"
#include "core/jit/runtime/module.h"
