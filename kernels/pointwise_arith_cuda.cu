// CUDA kernels of kernels/pointwise_arith.def.
#define TENSORD_TABLE "kernels/pointwise_arith.def"
#define TENSORD_FILL fill_arith_cuda
#include "kernels/pointwise_loops_cuda.cuh"
