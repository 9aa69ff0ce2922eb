// CUDA kernels of kernels/pointwise/math.def.
#define TENSORD_TABLE "kernels/pointwise/math.def"
#define TENSORD_FILL fill_math_cuda
#include "kernels/cuda/pointwise.cuh"
