// Random numbers of other distributions, drawn as PyTorch draws them: one uniform number of 53 bits an element.
#include "core/ops/complex.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/random/fill.h"
#include "kernels/random/random.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/view.h"

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
  const Tensor out = like.is_meta() ? Tensor::meta(sizes, like.dtype(), like.device())
                                    : Tensor::empty(sizes, like.dtype(), like.device());
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
    .kind(ops::OpKind::kComposite)
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
    .kind(ops::OpKind::kComposite)
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
    .kind(ops::OpKind::kComposite)
    .random();
OP("aten::normal.float_float")
    .impl([](double mean, double deviation, const IntList& sizes, const Value&, std::optional<DType> dtype,
             const Value&, std::optional<Device> device, const Value&) {
      const Tensor out = Tensor::empty(sizes, dtype.value_or(DType::kFloat32), device.value_or(Device{}));
      return ops::normal_(out, mean, deviation);
    })
    .random();

// --- choices by weight

void check_weights(const Tensor& x) {
  const auto holds = [](const Tensor& is_right) { return ops::all(is_right).item_bool(); };
  const Tensor finite = ops::isfinite(x), positive = ops::ge(x, ops::Scalar(0));
  check(holds(finite) && holds(positive), "probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor sums = ops::sum(x, Dims{-1});
  check(holds(ops::gt(sums, ops::Scalar(0))), "invalid multinomial distribution (sum of probabilities <= 0)");
}

// Where uniform numbers of (0, 1] fall in the running sums.
Tensor search_positions(const Tensor& weights, const Dims& sizes) {
  const Tensor sums = ops::cumsum(weights, -1);
  const Tensor shares = ops::div(sums, ops::slice(sums, -1, -1));
  const Tensor draws = ops::uniform_(Tensor::empty(sizes, DType::kFloat64, weights.device()));
  const Tensor found = ops::searchsorted(shares, ops::rsub(draws, ops::Scalar(1.0)));
  return ops::clamp_max(found, ops::Scalar(weights.sizes().back() - 1));
}

Tensor multinomial(const Tensor& x, int64_t samples, bool replacement, const Value&) {
  check(x.ndim() == 1 || x.ndim() == 2, "prob_dist must be 1 or 2 dim");
  check(is_floating(x.dtype()), "multinomial only supports floating-point dtypes for input, got: ", name_of(x.dtype()));
  check(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t classes = x.sizes().back(), rows = x.ndim() == 2 ? x.sizes()[0] : 1;
  check(classes < (int64_t{1} << 24), "number of categories cannot exceed 2^24");
  check(replacement || samples <= classes, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const Dims sizes = x.ndim() == 2 ? Dims{rows, samples} : Dims{samples};
  if (x.is_meta()) return Tensor::meta(sizes, DType::kInt64, x.device());
  if (rows == 0) return Tensor::empty(sizes, DType::kInt64, x.device());
  check_weights(x);
  if (!replacement || samples == 1) {
    // The largest values of weight / exponential number are a draw without replacement.
    const Tensor like =
        Tensor::empty_strided(x.sizes(), preserved_strides(x.sizes(), x.strides()), x.dtype(), x.device());
    const Tensor keys = ops::div(x, ops::exponential_(like, 1.0));
    return samples == 1 ? ops::argmax(keys, int64_t{-1}, true) : std::get<1>(ops::topk(keys, samples));
  }
  if (!x.device().is_host()) return search_positions(x, sizes);
  const Tensor out = Tensor::empty(sizes, DType::kInt64);
  draw_positions(x.contiguous(), out);
  return out;
}

OP("aten::multinomial").impl(multinomial).kind(ops::OpKind::kComposite).random();

}  // namespace
}  // namespace tensord::kernels
