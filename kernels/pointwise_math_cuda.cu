// CUDA kernels of kernels/pointwise_math.def.
#define TENSORD_TABLE "kernels/pointwise_math.def"
#define TENSORD_FILL fill_math_cuda
#include "kernels/pointwise_loops_cuda.cuh"
