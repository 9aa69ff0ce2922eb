// segment_reduce: reductions of segments of one dimension, given by lengths or offsets.
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "ops/reduce.h"

namespace tensord::kernels {
namespace {

OP("aten::_segment_reduce_backward").dynamic_shape();
OP("aten::segment_reduce")
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      return ops::_segment_reduce_backward(g, args.outputs[0].to_tensor(), args.inputs[0].to_tensor(),
                                           args.inputs[1].to_string(),
                                           {.lengths = ops::unbox<std::optional<Tensor>>(args.inputs[2]),
                                            .offsets = ops::unbox<std::optional<Tensor>>(args.inputs[4]),
                                            .axis = args.inputs[5].to_int(),
                                            .initial = ops::unbox<std::optional<ops::Scalar>>(args.inputs[7])});
    }))
    .saves("data, lengths, offsets, result")
    .dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
