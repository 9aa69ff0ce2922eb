// Counts of events, and functional variants of random operators.
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/random/random.h"
#include "ops/factory.h"
#include "ops/random.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using ops::Value;

OP("aten::poisson")
    .infer([](const Tensor& rates, const Value&) {
      check(is_floating(rates.dtype()), "poisson: not implemented for ", name_of(rates.dtype()));
      return TensorMeta{rates.sizes(), rates.dtype(), {}, rates.device()};
    })
    .gradient(kZeroGradient)
    .saves("")
    .random();

OP("aten::binomial")
    .infer([](const Tensor& count, const Tensor& prob, const Value&) {
      const DType dtype = count.dtype();
      check(dtype == DType::kFloat32 || dtype == DType::kFloat64, "binomial only supports floating-point dtypes for ",
            "count, got: ", name_of(dtype));
      check(prob.dtype() == dtype, "Found dtype ", name_of(prob.dtype()), " but expected ", name_of(dtype));
      const Dims sizes = broadcast_sizes(count.sizes(), prob.sizes());
      return TensorMeta{sizes, dtype, {}, count.device()};
    })
    .gradient(kZeroGradient)
    .saves("")
    .random();

// Functional variants, which exported programs contain: numbers of the shape and type of `self`.
#define FUNCTIONAL(NAME, OVERLOAD, PARAMETERS, ...)                                                                    \
  OP("aten::" NAME OVERLOAD)                                                                                           \
      .impl(                                                                                                           \
          [] PARAMETERS { return ops::call_by_name("aten::" NAME "_" OVERLOAD, ops::empty_like(self), __VA_ARGS__); }) \
      .gradient(kZeroGradient)                                                                                         \
      .saves("")                                                                                                       \
      .kind(ops::OpKind::kComposite)                                                                                   \
      .random();
#define TWO(NAME, A, B) \
  FUNCTIONAL(NAME, "", (const Tensor& self, double a, double b, const Value& generator), a, b, generator)
TWO("uniform", "from=0.", "to=1.")
TWO("cauchy", "median=0.", "sigma=1.")
TWO("log_normal", "mean=1.", "std=2.")
#undef TWO
FUNCTIONAL("exponential", "", (const Tensor& self, double rate, const Value& generator), rate, generator)
FUNCTIONAL("geometric", "", (const Tensor& self, double p, const Value& generator), p, generator)
FUNCTIONAL("random", "", (const Tensor& self, const Value& generator), generator)
FUNCTIONAL("random", ".from", (const Tensor& self, int64_t from, std::optional<int64_t> to, const Value& generator),
           from, to, generator)
FUNCTIONAL("random", ".to", (const Tensor& self, int64_t to, const Value& generator), to, generator)
#undef FUNCTIONAL
OP("aten::normal_functional")
    .impl([](const Tensor& self, double mean, double deviation, const Value&) {
      return ops::normal_(ops::empty_like(self), mean, deviation);
    })
    .gradient(kZeroGradient)
    .saves("")
    .kind(ops::OpKind::kComposite)
    .random();

}  // namespace
}  // namespace tensord::kernels
