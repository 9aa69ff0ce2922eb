// Softmax of groups on a CUDA device.
#include <algorithm>
#include <limits>

#include "core/tensor/device_copy.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

IMPL("tensord::group_softmax", kCUDA,
     [](const KernelContext& context, const Tensor& given_groups, const Tensor& given, int64_t count, bool is_log,
        Tensor& out) {
       if (out.numel() == 0) return;
       refuse_deterministic("softmax of a sparse tensor");
       const Tensor groups = given_groups.contiguous(), values = given.contiguous();
       const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype(), out.device());
       GroupSoftmaxJob job;
       job.is_log = is_log;
       job.dtype = static_cast<int8_t>(values.dtype());
       job.elements = groups.numel(), job.width = values.numel() / job.elements, job.groups = count;
       const Tensor tops = Tensor::empty(Dims{std::max<int64_t>(1, count), job.width}, DType::kFloat64, out.device()),
                    totals = Tensor::empty(tops.sizes(), DType::kFloat64, out.device());
       tops.copy_from(Tensor::scalar(-std::numeric_limits<double>::infinity()));
       zero_elements(totals);
       job.group = groups.raw_data(), job.values = values.raw_data(), job.out = dense.raw_data();
       job.tops = tops.raw_data(), job.totals = totals.raw_data();
       job.errors = errors_of(context);
       launch(context, &KernelTable::group_softmax, job);
       if (!dense.is_same(out)) out.copy_from(dense);
     });

}  // namespace
}  // namespace tensord::kernels
