// Packed sequences of different lengths: the rows of one time step after another, longest sequence first.
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/rnn.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;

// Each operator is the gradient of the other.
std::vector<Tensor> gradient_of_pack(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  if (!args.needs(0)) return std::vector<Tensor>(3);
  const bool batch_first = in[2].to_bool();
  const int64_t length = in[0].to_tensor().sizes()[batch_first ? 1 : 0];
  return {std::get<0>(ops::_pad_packed_sequence(args.grad_outputs[0], args.outputs[1].to_tensor(), batch_first,
                                                Scalar(0.0), length)),
          Tensor(), Tensor()};
}
std::vector<Tensor> gradient_of_pad(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  if (!args.needs(0)) return std::vector<Tensor>(5);
  return {std::get<0>(ops::_pack_padded_sequence(args.grad_outputs[0], args.outputs[1].to_tensor(), in[2].to_bool())),
          Tensor(), Tensor(), Tensor(), Tensor()};
}

OP("aten::_pack_padded_sequence").gradient(gradient_of_pack).saves("result1").dynamic_shape();
OP("aten::_pad_packed_sequence").gradient(gradient_of_pad).saves("result1").dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
