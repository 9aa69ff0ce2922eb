// segment_reduce: reductions of pieces of one dimension, cut by lengths or offsets.
#include "core/ops/run.h"
#include "kernels/fused/gradient_expr.h"

namespace tensord::kernels {
namespace {

OP("aten::_segment_reduce_backward").dynamic_shape();
OP("aten::segment_reduce")
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      return ops::call("aten::_segment_reduce_backward", g, args.outputs[0], args.inputs[0], args.inputs[1],
                       args.inputs[2], args.inputs[4], args.inputs[5], args.inputs[7]);
    }))
    .saves("data, lengths, offsets, result")
    .dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
