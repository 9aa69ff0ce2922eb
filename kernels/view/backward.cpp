// Gradients of views: zeros with the incoming gradient in its place. They are linear in their first argument, so the
// gradient of each is the view itself.

#include "kernels/expr/expr.h"
#include "kernels/view/geometry.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::of_first;
using ops::GradArgs;
using ops::IntList;
using ops::TensorMeta;

TensorMeta like_input(const Tensor& g, const IntList& sizes) {
  checked_numel(sizes);
  return {sizes, g.dtype(), {}, g.device()};
}

OP("aten::select_backward")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t) { return like_input(g, sizes); })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::select(g, args.inputs[2].to_int(), args.inputs[3].to_int());
    }))
    .saves("");

OP("aten::slice_backward")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t, int64_t, int64_t) {
      return like_input(g, sizes);
    })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::slice(g, args.inputs[2].to_int(), ops::unbox<std::optional<int64_t>>(args.inputs[3]),
                        ops::unbox<std::optional<int64_t>>(args.inputs[4]), args.inputs[5].to_int());
    }))
    .saves("");

OP("aten::diagonal_backward")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t, int64_t) { return like_input(g, sizes); })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::diagonal(g, args.inputs[2].to_int(), args.inputs[3].to_int(), args.inputs[4].to_int());
    }))
    .saves("");

OP("aten::unfold_backward")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t, int64_t) { return like_input(g, sizes); })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::unfold(g, args.inputs[2].to_int(), args.inputs[3].to_int(), args.inputs[4].to_int());
    }))
    .saves("");

// --- as_strided

TensorMeta geometry_meta(const Tensor& x, const Geometry& from, const Geometry& to) {
  from.check_valid();
  to.check_valid();
  check(x.sizes() == from.sizes, "as_strided: a tensor of shape ", x.sizes(), " where ", to_string(from.sizes),
        " is expected");
  checked_numel(to.sizes);
  return {to.sizes, x.dtype(), {}, x.device()};
}

// The gradient of as_strided: g has the layout (size, stride, storage_offset); the other arguments describe the result.
OP("tensord::as_strided_scatter_add")
    .infer([](const Tensor& g, const IntList& input_sizes, const IntList& input_strides, int64_t input_offset,
              const IntList& size, const IntList& stride, int64_t offset) {
      return geometry_meta(g, {size, stride, offset}, {input_sizes, input_strides, input_offset});
    })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::tensord_as_strided_gather(g, ops::unbox<Dims>(args.inputs[2]), args.inputs[3].to_int(),
                                            ops::unbox<Dims>(args.inputs[4]), ops::unbox<Dims>(args.inputs[5]),
                                            args.inputs[6].to_int());
    }))
    .saves("");
// as_strided of a tensor that is assumed to have the strides `self_strides` and the offset `self_offset`.
OP("tensord::as_strided_gather")
    .infer([](const Tensor& x, const IntList& self_strides, int64_t self_offset, const IntList& size,
              const IntList& stride, int64_t offset) {
      return geometry_meta(x, {x.sizes(), self_strides, self_offset}, {size, stride, offset});
    })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::tensord_as_strided_scatter_add(g, gradient::sizes_of(args, 0), ops::unbox<Dims>(args.inputs[1]),
                                                 args.inputs[2].to_int(), ops::unbox<Dims>(args.inputs[3]),
                                                 ops::unbox<Dims>(args.inputs[4]), args.inputs[5].to_int());
    }))
    .saves("");
}  // namespace
}  // namespace tensord::kernels
