// embedding_renorm_ on a CUDA device.
#include <algorithm>

#include "core/ops/attributes/written.h"
#include "core/tensor/device_copy.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

IMPL("aten::embedding_renorm_", kCUDA,
     [](const Tensor& table, const Tensor& indices, double max_norm, double norm_type) {
       check(table.ndim() == 2 && is_floating(table.dtype()),
             "embedding_renorm_ expects a table of floating point numbers");
       check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
             "embedding_renorm_ expects indices of dtype int32 or int64");
       if (table.is_meta() || indices.is_meta()) return table;
       ops::check_no_internal_overlap(table);
       if (table.numel() == 0 && indices.numel() == 0) return table;
       const KernelContext context(table.device());
       const Tensor order = indices.contiguous(),
                    named = Tensor::empty(Dims{std::max<int64_t>(1, table.sizes()[0])}, DType::kInt32, table.device());
       zero_elements(named);
       RenormJob job;
       job.dtype = static_cast<int8_t>(table.dtype());
       job.is_int32 = order.dtype() == DType::kInt32;
       job.rows = table.sizes()[0], job.width = table.sizes()[1];
       job.row_stride = table.strides()[0], job.column_stride = table.strides()[1];
       job.indices = order.numel();
       job.most = max_norm, job.power = norm_type;
       job.table = table.raw_data(), job.index = order.raw_data(), job.named = named.raw_data();
       job.errors = errors_of(context);
       launch(context, &KernelTable::renorm_rows, job);
       return table;
     });

}  // namespace
}  // namespace tensord::kernels
