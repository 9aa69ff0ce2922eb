// CUDA kernels of kernels/pointwise/special.def.
#include "kernels/cuda/device.cuh"
#include "kernels/special/functions.h"

#define TENSORD_TABLE "kernels/pointwise/special.def"
#define TENSORD_FILL fill_special_cuda
#include "kernels/cuda/pointwise.cuh"
