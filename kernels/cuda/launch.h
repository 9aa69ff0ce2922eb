#pragma once

#include "core/ops/op.h"
#include "core/ops/operator_scope.h"
#include "core/tensor/cuda/cuda_runtime.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/library_table.h"

// For the host halves of kernels.
namespace tensord::kernels {

inline const KernelTable& kernel_table() { return *static_cast<const KernelTable*>(cuda::api().kernels); }
inline const LibraryTable& library_table() { return *static_cast<const LibraryTable*>(cuda::api().libraries); }

// Queues a kernel in the context's stream: launch(context, &KernelTable::pointwise, job).
template <class Job>
void launch(const ops::KernelContext& context, void (*KernelTable::*kernel)(const Job&, cuda::StreamHandle),
            const Job& job) {
  const cuda::DeviceScope scope(context.device.index);
  (kernel_table().*kernel)(job, static_cast<cuda::StreamHandle>(context.stream->handle()));
  cuda::check_cuda(cuda::api().check_launch(), "launch of a kernel");
}

// For kernels whose sums are in the order in which threads come: throws Error{kUnimplemented} where the caller asks for
// the same bits each time.
inline void refuse_deterministic(const char* op) {
  if (execution_context().numerics.is_deterministic)
    fail(ErrorCode::kUnimplemented, op,
         " does not have a deterministic implementation on CUDA, but deterministic algorithms are asked for");
}

// Where the kernels of the thread's call note errors.
inline cuda::ErrorSink errors_of(const ops::KernelContext& context) {
  return {cuda::error_word_of(*context.stream), ops::OperatorScope::name()};
}

}  // namespace tensord::kernels
