// softmax and log_softmax along one dimension.
#include "kernels/norm/softmax.h"

#include <vector>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "kernels/base/lines.h"
#include "kernels/norm/softmax_run.h"
#include "ops/norm.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::TensorMeta;

TensorMeta infer_softmax(const char* op, const Tensor& in, int64_t dim, const std::optional<DType>& dtype) {
  wrap_dim(dim, in.ndim());
  const DType result = dtype.value_or(in.dtype());
  if (!is_floating(result)) fail_dtype(op, result);
  return {in.sizes(), result, {}, in.device()};
}

std::vector<Tensor> softmax_gradient(const ops::GradArgs& args, bool is_log) {
  std::vector<Tensor> gradients(args.inputs.size());
  const auto backward = is_log ? ops::_log_softmax_backward_data : ops::_softmax_backward_data;
  gradients[0] = backward(args.grad_outputs[0], args.outputs[0].to_tensor(), args.inputs[1].to_int(),
                          args.inputs[0].to_tensor().dtype());
  return gradients;
}

void add(const char* name, bool is_log) {
  ops::OpBuilder(name, __FILE__, __LINE__)
      .infer([name](const Tensor& in, int64_t dim, std::optional<DType> dtype) {
        return infer_softmax(name, in, dim, dtype);
      })
      .set<ops::BatchIndependent>(ops::works_along_other_dims)
      .gradient([is_log](const ops::GradArgs& args) { return softmax_gradient(args, is_log); })
      .saves("result")
      .reduction();
  ops::ImplBuilder(name, DeviceKind::kCPU,
                   [is_log](const KernelContext&, const Tensor& in, int64_t dim, std::optional<DType>, Tensor& out) {
                     run_softmax(in, dim, is_log, out);
                   });
  add_row_kernel_maker(
      name,
      [is_log](std::span<const ops::Value> v) {
        const Tensor& in = v[0].to_tensor();
        return softmax_call(in, v[1].to_int(), v[2].is_none() ? in.dtype() : v[2].to_dtype(), is_log);
      },
      false);
  ops::PrepareBuilder(name, DeviceKind::kCPU,
                      [is_log](const ops::PrepareArgs& args) { return prepare_softmax(args, is_log); });
}
// The overloads with the half_to_float flag, which has a meaning on CUDA only.
void add_internal(const char* name, bool is_log) {
  ops::OpBuilder(name, __FILE__, __LINE__)
      .infer([name](const Tensor& in, int64_t dim, bool) { return infer_softmax(name, in, dim, {}); })
      .set<ops::BatchIndependent>(ops::works_along_other_dims)
      .gradient([is_log](const ops::GradArgs& args) { return softmax_gradient(args, is_log); })
      .saves("result")
      .reduction();
  ops::ImplBuilder(name, DeviceKind::kCPU,
                   [is_log](const KernelContext&, const Tensor& in, int64_t dim, bool, Tensor& out) {
                     run_softmax(in, dim, is_log, out);
                   });
  add_row_kernel_maker(
      name,
      [is_log](std::span<const ops::Value> v) {
        const Tensor& in = v[0].to_tensor();
        return softmax_call(in, v[1].to_int(), in.dtype(), is_log);
      },
      false);
  ops::PrepareBuilder(name, DeviceKind::kCPU,
                      [is_log](const ops::PrepareArgs& args) { return prepare_softmax(args, is_log); });
}

bool register_softmax() {
  add("aten::softmax.int", false);
  add("aten::log_softmax.int", true);
  add_internal("aten::_softmax", false);
  add_internal("aten::_log_softmax", true);
  return true;
}
[[maybe_unused]] const bool softmax_registered = register_softmax();

// There is no softmax of complex numbers, but the dtype argument may ask for real ones.
Tensor of_real_parts(const char* name, const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  if (!dtype || is_complex(*dtype))
    fail(ErrorCode::kUnimplemented, "not implemented for ", name_of(dtype.value_or(in.dtype())));
  return ops::call_by_name(name, ops::to(in, *dtype), dim, ops::Value());
}
IMPL("aten::softmax.int", ops::kComplexComposite, [](const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  return of_real_parts("aten::softmax.int", in, dim, dtype);
});
IMPL("aten::log_softmax.int", ops::kComplexComposite, [](const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  return of_real_parts("aten::log_softmax.int", in, dim, dtype);
});

}  // namespace
}  // namespace tensord::kernels
