// CUDA kernels of kernels/special/functions.def.
#include "kernels/cuda/device.cuh"
#include "kernels/special/functions.h"

#define TENSORD_TABLE "kernels/special/functions.def"
#define TENSORD_FILL fill_special_cuda
#include "kernels/cuda/pointwise.cuh"
