// Random numbers of other distributions, drawn as PyTorch draws them: one uniform number of 53 bits an element.
#include "core/ops/complex.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/random/random.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduce.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::Value;

#define FILL(NAME) OP(NAME).gradient(kZeroGradient).saves("").random()
FILL("aten::exponential_");
FILL("aten::cauchy_");
FILL("aten::log_normal_");
FILL("aten::geometric_");
FILL("aten::random_");
#undef FILL

// --- normal numbers with means and deviations of their own

Tensor standard_normal(const Tensor& like, const Dims& sizes, double deviation) {
  const Tensor out = like.is_meta() ? Tensor::meta(sizes, like.dtype()) : Tensor::empty(sizes, like.dtype());
  return ops::normal_(out, 0.0, deviation);
}
void check_deviations(const Tensor& deviations) {
  check(is_floating(deviations.dtype()), "normal expects standard deviation to be floating point");
  check(deviations.is_meta() || deviations.numel() == 0 || ops::min(deviations).item_double() >= 0,
        "normal expects all elements of std >= 0.0");
}
// The drawn numbers do not depend on mean and deviation, but autograd treats the result as computed from them.
std::vector<Tensor> zeros_of_parameters(const ops::GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (args.inputs[i].is_tensor() && args.needs(i)) gradients[i] = gradient::zeros_like(args.inputs[i].to_tensor());
  }
  return gradients;
}
OP("aten::normal.Tensor_float")
    .impl([](const Tensor& mean, double deviation, const Value&) {
      return ops::add_(standard_normal(mean, mean.sizes(), deviation), mean);
    })
    .gradient(zeros_of_parameters)
    .saves("")
    .random();
IMPL("aten::normal.Tensor_float", ops::kComplexCPU, ops::kSameAsDense);
OP("aten::normal.float_Tensor")
    .impl([](double mean, const Tensor& deviations, const Value&) {
      check_deviations(deviations);
      const Tensor out = ops::mul_(standard_normal(deviations, deviations.sizes(), 1), deviations);
      return ops::add_(out, ops::Scalar(mean));
    })
    .gradient(zeros_of_parameters)
    .saves("")
    .random();
OP("aten::normal.Tensor_Tensor")
    .impl([](const Tensor& mean, const Tensor& deviations, const Value&) {
      check_deviations(deviations);
      const Dims sizes = broadcast_sizes(mean.sizes(), deviations.sizes());
      const Tensor out = ops::mul_(standard_normal(mean, sizes, 1), deviations);
      return ops::add_(out, mean);
    })
    .gradient(zeros_of_parameters)
    .saves("")
    .random();
OP("aten::normal.float_float")
    .impl([](double mean, double deviation, const IntList& sizes, const Value&, std::optional<DType> dtype,
             const Value&, const Value&, const Value&) {
      return ops::normal_(Tensor::empty(sizes, dtype.value_or(DType::kFloat32)), mean, deviation);
    })
    .random();

// --- choices by weight

OP("aten::multinomial").random();

}  // namespace
}  // namespace tensord::kernels
