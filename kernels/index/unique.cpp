// Distinct values, counts of values, and their one-hot form. All shapes depend on data.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
   "Tensor, Tensor)")
    .dynamic_shape();
OP("aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)").dynamic_shape();
OP("aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
   "(Tensor, Tensor, Tensor)")
    .dynamic_shape();
OP("aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
   "(Tensor, Tensor, Tensor)")
    .dynamic_shape();
OP("aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> "
   "(Tensor, Tensor, Tensor)")
    .dynamic_shape();
OP("aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor").dynamic_shape();
OP("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor");

}  // namespace
}  // namespace tensord::kernels
