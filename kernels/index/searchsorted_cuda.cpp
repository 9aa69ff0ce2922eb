// searchsorted and bucketize on a CUDA device.
#include "core/ops/op.h"
#include "kernels/cuda/launch.h"
#include "kernels/index/searchsorted.h"
#include "ops/reduce.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using OptionalTensor = std::optional<Tensor>;
using OptionalString = std::optional<std::string>;

void search_cuda(const KernelContext& context, const Search& search, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor given = search.values.to(context.device);
  const DType have = search.sequences.dtype(), want = given.dtype();
  // A single value of the same category takes the sequence's dtype.
  const bool yields = given.ndim() == 0 && is_floating(have) >= is_floating(want);
  const DType common = yields ? have : promote_types(have, want);
  const DType loop = is_floating(common) ? DType::kFloat64 : DType::kInt64;
  const Tensor sequences = search.sequences.to(common).to(loop).contiguous(),
               values = given.to(common).to(loop).contiguous(),
               sorter = search.sorter ? search.sorter->contiguous() : Tensor();
  SearchJob job;
  job.is_integer = loop == DType::kInt64;
  job.is_right = search.right;
  job.is_narrow = search.narrow;
  job.is_shared = sequences.ndim() == 1;  // the values of a row search the same sequence
  job.values_count = values.numel();
  job.length = sequences.sizes().back();
  job.row = job.is_shared ? values.numel() : values.sizes().back();
  job.sequences = sequences.raw_data();
  job.values = values.raw_data();
  if (sorter && sorter.numel() > 0) {
    check(ops::min(sorter).item_int() >= 0 && ops::max(sorter).item_int() < job.length,
          "torch.searchsorted(): sorter index out of range");
    job.order = sorter.raw_data();
  }
  job.out = out.raw_data();
  launch(context, &KernelTable::search, job);
}
IMPL("aten::searchsorted.Tensor", kCUDA,
     [](const KernelContext& context, const Tensor& sequence, const Tensor& values, bool narrow, bool right,
        const OptionalString& side, const OptionalTensor& sorter,
        Tensor& out) { search_cuda(context, make_search(sequence, values, narrow, right, side, sorter), out); });
IMPL("aten::searchsorted.Scalar", kCUDA,
     [](const KernelContext& context, const Tensor& sequence, const Scalar& value, bool narrow, bool right,
        const OptionalString& side, const OptionalTensor& sorter, Tensor& out) {
       search_cuda(context, make_search(sequence, search_scalar(value), narrow, right, side, sorter), out);
     });
IMPL("aten::bucketize.Tensor", kCUDA,
     [](const KernelContext& context, const Tensor& values, const Tensor& boundaries, bool narrow, bool right,
        Tensor& out) { search_cuda(context, make_buckets(values, boundaries, narrow, right), out); });
IMPL("aten::bucketize.Scalar", kCUDA,
     [](const KernelContext& context, const Scalar& value, const Tensor& boundaries, bool narrow, bool right,
        Tensor& out) { search_cuda(context, make_buckets(search_scalar(value), boundaries, narrow, right), out); });

}  // namespace
}  // namespace tensord::kernels
