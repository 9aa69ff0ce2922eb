#pragma once

#include "core/tensor/cuda/api.h"
#include "kernels/cuda/complex_job.h"
#include "kernels/cuda/index_job.h"
#include "kernels/cuda/layers/attention_job.h"
#include "kernels/cuda/layers/columns_job.h"
#include "kernels/cuda/layers/conv_job.h"
#include "kernels/cuda/layers/loss_job.h"
#include "kernels/cuda/layers/norm_job.h"
#include "kernels/cuda/layers/optim_job.h"
#include "kernels/cuda/layers/pool_job.h"
#include "kernels/cuda/layers/resample_job.h"
#include "kernels/cuda/pointwise_job.h"
#include "kernels/cuda/product_job.h"
#include "kernels/cuda/random_job.h"
#include "kernels/cuda/reduce_job.h"
#include "kernels/cuda/rows_job.h"
#include "kernels/cuda/scan_job.h"
#include "kernels/cuda/sort_job.h"

// What the library for CUDA has of kernels, for the engine (launch.h) and the library itself.
namespace tensord::kernels {

struct KernelTable {
#define KERNEL(NAME, JOB) void (*NAME)(const JOB& job, cuda::StreamHandle stream) = nullptr;
#include "kernels/cuda/kernels.def"
#undef KERNEL
};

}  // namespace tensord::kernels
