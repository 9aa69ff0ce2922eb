// CUDA kernels of kernels/pointwise/arith.def.
#define TENSORD_TABLE "kernels/pointwise/arith.def"
#define TENSORD_FILL fill_arith_cuda
#include "kernels/cuda/pointwise.cuh"
