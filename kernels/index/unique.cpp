// Distinct values, counts of values, and their one-hot form. All shapes depend on data.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("aten::_unique2").dynamic_shape();
OP("aten::_unique").dynamic_shape();
OP("aten::unique_dim").dynamic_shape();
OP("aten::unique_consecutive").dynamic_shape();
OP("aten::unique_dim_consecutive").dynamic_shape();
OP("aten::bincount").dynamic_shape();
OP("aten::one_hot");

}  // namespace
}  // namespace tensord::kernels
