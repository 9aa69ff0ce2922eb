// Operators whose code for the processor serves CUDA as it is: it reads no element itself, but goes to the tensor's
// device by copy_elements, zero_elements, run_reduction and index(), or calls operators.
#include <sstream>
#include <string>
#include <unordered_set>

#include "core/ops/registry.h"

namespace tensord::kernels {
namespace {

constexpr const char* kSharedKernels = R"(
  aten::zeros aten::ones aten::empty.memory_format aten::empty_strided aten::full aten::zeros_like aten::empty_like
  aten::ones_like aten::full_like aten::new_zeros aten::new_empty aten::new_empty_strided aten::new_ones aten::new_full
  aten::eye aten::eye.m
  aten::cat aten::concat aten::concatenate aten::stack aten::hstack aten::vstack aten::row_stack aten::dstack
  aten::repeat aten::tile aten::roll aten::flip aten::fliplr aten::flipud aten::constant_pad_nd
  aten::select_backward aten::slice_backward aten::diagonal_backward
  aten::sum aten::sum.dim_IntList aten::mean aten::mean.dim aten::prod aten::prod.dim_int
  aten::max aten::min aten::amax aten::amin aten::any aten::any.dim aten::all aten::all.dim
  aten::count_nonzero aten::count_nonzero.dim_IntList
  aten::var aten::var.dim aten::var.correction aten::std aten::std.dim aten::std.correction
  aten::var_mean aten::var_mean.dim aten::var_mean.correction
  aten::std_mean aten::std_mean.dim aten::std_mean.correction
  aten::norm.Scalar aten::norm.ScalarOpt_dtype aten::norm.ScalarOpt_dim aten::norm.ScalarOpt_dim_dtype
  aten::linalg_vector_norm
  aten::all.dims aten::any.dims aten::logsumexp
  aten::_unsafe_view aten::unsafe_chunk aten::unsafe_split.Tensor aten::unsafe_split_with_sizes
  tensord::attention tensord::conj aten::_aminmax
  aten::index.Tensor aten::index_put aten::index_put_ aten::nonzero aten::nonzero_numpy aten::argwhere aten::where
)";

const std::unordered_set<std::string>& shared_names() {
  static const auto* const names = [] {
    auto* const out = new std::unordered_set<std::string>;
    std::istringstream text(kSharedKernels);
    for (std::string name; text >> name;) out->insert(name);
    return out;
  }();
  return *names;
}

// Code for complex numbers, which stands beside, is not shared.
template <class Fn>
Fn shared(const ops::Op& op, const Fn& code, Fn ops::KernelFunction::*part) {
  const ops::KernelFunction* const dense = op.kernel(kCPU);
  const bool is_dense = dense && &(dense->*part) == &code;
  return is_dense && shared_names().contains(op.schema.full_name()) ? code : Fn();
}

[[maybe_unused]] const bool shared_kernels_registered =
    (ops::derive_kernels(
         {kCUDA, kCPU,
          [](const ops::Op& op, const ops::FillFn& fill) { return shared(op, fill, &ops::KernelFunction::fill); },
          [](const ops::Op& op, const ops::ReturnFn& function) {
            return shared(op, function, &ops::KernelFunction::function);
          }}),
     true);

}  // namespace
}  // namespace tensord::kernels
