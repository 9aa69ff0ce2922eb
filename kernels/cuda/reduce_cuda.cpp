// Reductions on a CUDA device.
#include "kernels/reduce/reduce.h"

#include <algorithm>

#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

// Few results of very many elements take several blocks each.
int parts_for(int64_t outputs, int64_t inner) {
  constexpr int64_t kPartElements = 16384, kEnoughBlocks = 256;
  const int64_t wanted = std::min(inner / kPartElements, kEnoughBlocks / std::max<int64_t>(outputs, 1));
  return static_cast<int>(std::clamp<int64_t>(wanted, 1, kEnoughBlocks));
}

int64_t smallest_stride(const Dims& strides) {
  int64_t best = INT64_MAX;
  for (const int64_t stride : strides) best = stride == 0 ? best : std::min(best, std::abs(stride));
  return best;
}

void check_reduce_dims(size_t ndim) {
  if (ndim > static_cast<size_t>(kReduceDims))
    fail(ErrorCode::kUnimplemented, "reductions on CUDA take at most ", kReduceDims,
         " dimensions that cannot be merged");
}

struct ReduceSplit {
  Dims kept_sizes, kept_in, kept_out, kept_center, inner_sizes, inner_in;
  ReduceSplit(const Reduction& reduction, const Tensor& in, const Tensor& out) {
    for (size_t d = 0; d < in.sizes().size(); ++d) {
      if (in.sizes()[d] == out.sizes()[d]) {
        if (in.sizes()[d] == 1) continue;
        kept_sizes.push_back(in.sizes()[d]);
        kept_in.push_back(in.strides()[d]);
        kept_out.push_back(out.strides()[d]);
        kept_center.push_back(reduction.centers ? reduction.centers->strides()[d] : 0);
      } else {
        inner_sizes.push_back(in.sizes()[d]);
        inner_in.push_back(in.strides()[d]);
      }
    }
  }
};

}  // namespace

void run_reduction_cuda(const Reduction& reduction, const Tensor& in, const Tensor& out) {
  const ReduceSplit split(reduction, in, out);
  const LoopNest<3> kept(split.kept_sizes, {split.kept_in, split.kept_out, split.kept_center});
  const LoopNest<1> inner(split.inner_sizes, {split.inner_in});
  check_reduce_dims(std::max(kept.ndim(), inner.ndim()));
  ReduceJob job;
  job.reducer = static_cast<int8_t>(reduction.reducer);
  const DType loop = loop_dtype(reduction.compute);
  job.loop = static_cast<int8_t>(loop);
  job.in_dtype = static_cast<int8_t>(in.dtype());
  job.out_dtype = static_cast<int8_t>(out.dtype());
  job.outputs = out.numel();
  job.inner = inner.numel();
  job.kept_dims = static_cast<int>(kept.ndim());
  for (size_t d = 0; d < kept.ndim(); ++d) {
    job.kept_sizes[d] = kept.size(d);
    job.kept_in[d] = kept.stride(0, d);
    job.kept_out[d] = kept.stride(1, d);
    job.kept_center[d] = kept.stride(2, d);
  }
  job.inner_dims = static_cast<int>(inner.ndim());
  for (size_t d = 0; d < inner.ndim(); ++d) {
    job.inner_sizes[d] = inner.size(d);
    job.inner_in[d] = inner.stride(0, d);
  }
  job.by_columns =
      job.outputs >= 32 && (job.inner <= 16 || smallest_stride(split.kept_in) < smallest_stride(split.inner_in));
  if (!job.by_columns) job.parts = parts_for(job.outputs, job.inner);
  job.power = reduction.power;
  job.scale = reduction.scale;
  job.root = reduction.root;
  job.in = in.raw_data();
  job.out = out.raw_data();
  if (reduction.centers) job.centers = reduction.centers->raw_data();
  Tensor partial;
  if (job.parts > 1) {
    partial = Tensor::empty(Dims{job.outputs * job.parts}, DType::kFloat64, in.device());
    job.partial = partial.raw_data();
  }
  launch(ops::KernelContext(in.device()), &KernelTable::reduce, job);
}

}  // namespace tensord::kernels
