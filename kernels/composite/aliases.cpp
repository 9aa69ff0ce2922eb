// Other names of operators. As in PyTorch, the compiler replaces them by the main name.
#include "core/ops/alias.h"

namespace tensord::kernels {
namespace {

ALIAS("aten::__ilshift__", "aten::bitwise_left_shift_");
ALIAS("aten::__irshift__", "aten::bitwise_right_shift_");
ALIAS("aten::_conj", "aten::conj");
ALIAS("aten::_cdist_forward", "aten::cdist");
ALIAS("aten::_pdist_forward", "aten::pdist");
ALIAS("aten::_stack", "aten::stack");
ALIAS("aten::absolute", "aten::abs");
ALIAS("aten::adjoint", "aten::mH");
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
ALIAS("aten::linalg_matmul", "aten::matmul");
ALIAS("aten::multiply", "aten::mul");
ALIAS("aten::native_channel_shuffle", "aten::channel_shuffle");
ALIAS("aten::negative", "aten::neg");
ALIAS("aten::not_equal", "aten::ne");
ALIAS("aten::special_digamma", "aten::digamma");
ALIAS("aten::special_erf", "aten::erf");
ALIAS("aten::special_erfc", "aten::erfc");
ALIAS("aten::special_erfinv", "aten::erfinv");
ALIAS("aten::special_exp2", "aten::exp2");
ALIAS("aten::special_expit", "aten::sigmoid");
ALIAS("aten::special_expm1", "aten::expm1");
ALIAS("aten::special_gammainc", "aten::igamma");
ALIAS("aten::special_gammaincc", "aten::igammac");
ALIAS("aten::special_gammaln", "aten::lgamma");
ALIAS("aten::special_i0", "aten::i0");
ALIAS("aten::special_log1p", "aten::log1p");
ALIAS("aten::special_log_softmax", "aten::log_softmax");
ALIAS("aten::special_logit", "aten::logit");
ALIAS("aten::special_logsumexp", "aten::logsumexp");
ALIAS("aten::special_multigammaln", "aten::mvlgamma");
ALIAS("aten::special_polygamma", "aten::polygamma");
ALIAS("aten::special_psi", "aten::digamma");
ALIAS("aten::special_round", "aten::round");
ALIAS("aten::special_sinc", "aten::sinc");
ALIAS("aten::special_softmax", "aten::softmax");
ALIAS("aten::special_xlogy", "aten::xlogy");
ALIAS("aten::subtract", "aten::sub");
ALIAS("aten::true_divide", "aten::div");

}  // namespace
}  // namespace tensord::kernels
