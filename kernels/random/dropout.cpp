// dropout and its variants: the identity in evaluation; in training composed of random operators.
#include "kernels/random/dropout.h"

#include <cmath>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/tensor/memory_order.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;

void check_probability(double p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

// 1 with probability 1 - p. Has the shape `shape`, which broadcasts over a whole feature map.
Tensor keep_mask(const Tensor& in, double p, bool by_feature) {
  Dims sizes = in.sizes();
  if (by_feature) {
    check(in.ndim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    for (int64_t d = 2; d < in.ndim(); ++d) sizes[d] = 1;
  }
  const Tensor mask = in.is_meta() ? Tensor::meta(sizes, in.dtype()) : Tensor::empty(sizes, in.dtype(), in.device());
  return ops::bernoulli_(mask, 1 - p);
}

// Scaled by 1 / (1 - p), which keeps the expected value.
Tensor dropped(const Tensor& in, double p, bool by_feature) {
  if (p == 1) return ops::mul(in, 0.0);
  // PyTorch draws row by row for dropout, and in memory order for native_dropout.
  if (!by_feature && is_floating(in.dtype()) && in.is_contiguous())
    return std::get<0>(ops::native_dropout(in, p, true));
  const Tensor mask = keep_mask(in, p, by_feature);
  return ops::mul(in, ops::div(mask, 1 - p));
}

// Dropped values become the limit of SELU at minus infinity; an affine map then restores mean and variance (Klambauer
// et al., "Self-Normalizing Neural Networks", 2017).
Tensor alpha_dropped(const Tensor& in, double p, bool by_feature) {
  constexpr double kLimit = -1.7580993408473768600;
  const double a = 1 / std::sqrt((1 - p) * (1 + p * kLimit * kLimit));
  if (p == 1) return ops::mul(in, 0.0);
  const Tensor mask = keep_mask(in, p, by_feature);
  const Tensor fill = ops::mul(ops::rsub(mask, 1.0), kLimit * a);
  const Tensor kept = ops::mul(ops::mul(in, mask), a);
  return ops::add(ops::add(kept, fill), -a * p * kLimit);
}

// --- dropout that returns its mask

TensorMeta like(const Tensor& x, DType dtype) {
  return {x.sizes(), dtype, preserved_strides(x.sizes(), x.strides()), x.device()};
}

OP("aten::native_dropout")
    .infer([](const Tensor& x, double p, std::optional<bool>) {
      check_probability(p);
      if (!is_floating(x.dtype())) fail_dtype("native_dropout", x.dtype());
      return std::vector<TensorMeta>{like(x, x.dtype()), like(x, DType::kBool)};
    })
    .gradient([](const ops::GradArgs& args) {
      std::vector<Tensor> out(args.inputs.size());
      if (!args.grad_outputs[0].defined()) return out;
      const bool trains = args.inputs[2].is_none() || args.inputs[2].to_bool();
      const double p = args.inputs[1].to_float();
      out[0] = ops::native_dropout_backward(args.grad_outputs[0], args.outputs[1].to_tensor(),
                                            trains ? kept_scale(p, args.grad_outputs[0].dtype()) : 1.0);
      return out;
    })
    .saves("result1")
    .random();
OP("aten::native_dropout_backward")
    .infer([](const Tensor& g, const Tensor& mask, double) {
      check(mask.dtype() == DType::kBool, "mask should be torch.bool dtype");
      check(g.sizes() == mask.sizes(), "the gradient is of size ", g.sizes(), ", the mask of ", mask.sizes());
      if (!is_floating(g.dtype())) fail_dtype("native_dropout_backward", g.dtype());
      return like(g, g.dtype());
    })
    .gradient([](const ops::GradArgs& args) {
      std::vector<Tensor> out(args.inputs.size());
      out[0] = ops::native_dropout_backward(args.grad_outputs[0], args.inputs[1].to_tensor(),
                                            ops::unbox<double>(args.inputs[2]));
      return out;
    })
    .saves("mask");
void add(const char* name, Tensor (*training)(const Tensor&, double, bool), bool by_feature) {
  const auto run = [=](const Tensor& in, double p, bool train) {
    check_probability(p);
    return train && p > 0 && in.numel() > 0 ? training(in, p, by_feature) : in;
  };
  // Declares the alias, unlike PyTorch's schema: in evaluation the result is the argument, so writing to one writes to
  // the other.
  ops::OpBuilder(concat("aten::", name), __FILE__, __LINE__)
      .impl([run](const Tensor& in, double p, bool train) { return run(in, p, train); })
      .composite()
      .random();
  ops::OpBuilder(concat("aten::", name, "_"), __FILE__, __LINE__)
      .impl([run](const Tensor& self, double p, bool train) {
        const Tensor result = run(self, p, train);
        if (!result.is_same(self)) ops::copy_(self, result);
        return self;
      })
      .composite()
      .random();
}

bool register_dropout() {
  add("dropout", dropped, false);
  add("feature_dropout", dropped, true);
  add("alpha_dropout", alpha_dropped, false);
  add("feature_alpha_dropout", alpha_dropped, true);
  return true;
}
[[maybe_unused]] const bool dropout_registered = register_dropout();

}  // namespace
}  // namespace tensord::kernels
