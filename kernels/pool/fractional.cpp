// Fractional max pooling: windows of one size at pseudo-random positions, which samples in 0 … 1 determine.
#include "kernels/pool/fractional.h"

#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/view.h"

namespace tensord::kernels {

FractionalPool make_fractional_pool(int dims, const Tensor& given, const Dims& window, const Dims& output,
                                    const Tensor& given_samples) {
  const std::string name = concat("fractional_max_pool", dims, "d(): ");
  check(given.dtype() == DType::kFloat32 || given.dtype() == DType::kFloat64, name, "not implemented for ",
        name_of(given.dtype()));
  check(given_samples.dtype() == given.dtype(), "Expect _random_samples to have the same dtype as input");
  check(window.size() == static_cast<size_t>(dims) && output.size() == static_cast<size_t>(dims), name,
        "kernel_size and output_size must have ", dims, " numbers");
  check(given.ndim() == dims + 1 || given.ndim() == dims + 2, name, "Expected ", dims + 1, "D or ", dims + 2,
        "D tensor, but got: ", given.sizes());
  FractionalPool s;
  for (int64_t d = 0; d < given.ndim() - dims; ++d) s.planes *= given.size(d), s.sizes.push_back(given.size(d));
  for (int i = 0; i < dims; ++i) {
    const int to = 3 - dims + i;
    s.in[to] = given.size(i - dims), s.window[to] = window[static_cast<size_t>(i)],
    s.out[to] = output[static_cast<size_t>(i)];
    check(s.window[to] > 0 && s.out[to] > 0, name, "kernel_size and output_size must be above 0");
    check(s.out[to] + s.window[to] - 1 <= s.in[to], name, "pool size ", s.window[to],
          " too large relative to input size ", s.in[to]);
    s.sizes.push_back(s.out[to]);
  }
  check(given_samples.ndim() == 3 && given_samples.size(0) * given_samples.size(1) == s.planes &&
            given_samples.size(2) == dims,
        name, "Expect _random_samples to hold ", dims, " numbers for each of ", s.planes, " planes, but got ",
        given_samples.sizes());
  return s;
}

namespace {

using ops::GradArgs;
using ops::IntList;

template <int kDims>
std::vector<ops::TensorMeta> infer_pool(const Tensor& x, const IntList& window, const IntList& output,
                                        const Tensor& samples) {
  const Dims sizes = make_fractional_pool(kDims, x, window, output, samples).sizes;
  return {{sizes, x.dtype(), {}, x.device()}, {sizes, DType::kInt64, {}, x.device()}};
}

// The gradient goes to where the values came from; windows may overlap there.
template <int kDims>
Tensor pool_back(const Tensor& g, const Tensor& x, const IntList&, const IntList&, const Tensor& places) {
  check(g.sizes() == places.sizes(), "fractional_max_pool", kDims, "d_backward(): the gradient is of shape ", g.sizes(),
        ", the indices of ", places.sizes());
  const auto flat = [](const Tensor& t) { return ops::flatten(t, -kDims, int64_t{-1}); };
  const Tensor zeros = ops::zeros_like(flat(x));
  return ops::reshape(ops::scatter_add(zeros, int64_t{-1}, flat(places), flat(g)), x.sizes());
}

#define FRACTIONAL(N)                                                                                              \
  OP("aten::fractional_max_pool" #N "d")                                                                           \
      .infer(infer_pool<N>)                                                                                        \
      .gradient([](const GradArgs& args) {                                                                         \
        std::vector<Tensor> out(4);                                                                                \
        if (args.grad_outputs[0] && args.needs(0)) {                                                               \
          out[0] =                                                                                                 \
              pool_back<N>(args.grad_outputs[0], args.inputs[0].to_tensor(), {}, {}, args.outputs[1].to_tensor()); \
        }                                                                                                          \
        return out;                                                                                                \
      })                                                                                                           \
      .saves("result1");                                                                                           \
  OP("aten::fractional_max_pool" #N "d_backward").impl(pool_back<N>).composite()
FRACTIONAL(2);
FRACTIONAL(3);

}  // namespace
}  // namespace tensord::kernels
