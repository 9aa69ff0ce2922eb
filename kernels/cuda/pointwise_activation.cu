// CUDA kernels of kernels/pointwise/activation.def.
#define TENSORD_TABLE "kernels/pointwise/activation.def"
#define TENSORD_FILL fill_activation_cuda
#include "kernels/cuda/pointwise.cuh"
