// Second names of operators. PyTorch's compiler replaces them by the first ones, and so does ours.
#include "core/ops/alias.h"

namespace tensord::kernels {
namespace {

ALIAS("aten::absolute", "aten::abs");
ALIAS("aten::arccos", "aten::acos");
ALIAS("aten::arccosh", "aten::acosh");
ALIAS("aten::arcsin", "aten::asin");
ALIAS("aten::arcsinh", "aten::asinh");
ALIAS("aten::arctan", "aten::atan");
ALIAS("aten::arctan2", "aten::atan2");
ALIAS("aten::arctanh", "aten::atanh");
ALIAS("aten::clip", "aten::clamp");
ALIAS("aten::divide", "aten::div");
ALIAS("aten::fix", "aten::trunc");
ALIAS("aten::greater", "aten::gt");
ALIAS("aten::greater_equal", "aten::ge");
ALIAS("aten::less", "aten::lt");
ALIAS("aten::less_equal", "aten::le");
ALIAS("aten::multiply", "aten::mul");
ALIAS("aten::negative", "aten::neg");
ALIAS("aten::not_equal", "aten::ne");
ALIAS("aten::subtract", "aten::sub");
ALIAS("aten::true_divide", "aten::div");

}  // namespace
}  // namespace tensord::kernels
