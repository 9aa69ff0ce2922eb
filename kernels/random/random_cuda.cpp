// Random numbers on a CUDA device, from the Philox state that the current generator has for it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/ops/attributes/written.h"
#include "core/ops/generator.h"
#include "core/ops/op.h"
#include "core/tensor/complex.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/memory_order.h"
#include "kernels/cuda/launch.h"
#include "kernels/random/dropout.h"
#include "kernels/random/random.h"
#include "kernels/view/view.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::Value;

// The number of threads that PyTorch starts, which determines the numbers, and the most that each of them draws.
void set_threads(RandomJob& job, const KernelContext& context) {
  const cuda::DeviceProperties& chip = cuda::device_properties(context.device.index);
  const int64_t most = int64_t{chip.multiprocessors} * (chip.threads_of_multiprocessor / kRandomBlock);
  const int64_t blocks = std::min((job.numel + kRandomBlock - 1) / kRandomBlock, std::max<int64_t>(most, 1));
  job.threads = blocks * kRandomBlock;
}
uint64_t numbers_of_thread(const RandomJob& job) {
  // Counts of events draw as often as they need; this is more than they ever do.
  if (job.use >= RandomUse::kChances) return job.use == RandomUse::kChances ? 4 : 4096;
  const int64_t each = job.threads * (job.is_wide ? 2 : 4);
  return static_cast<uint64_t>((job.numel - 1) / each + 1) * 4;
}

void launch_draw(RandomJob& job, const KernelContext& context, const Tensor& dense) {
  job.dtype = static_cast<int8_t>(dense.dtype());
  job.numel = dense.numel();
  job.out = dense.raw_data();
  set_threads(job, context);
  ops::Generator& generator = ops::current_generator(context.device);
  {
    const auto lock = generator.lock();
    const ops::PhiloxState state = generator.take(context.device, numbers_of_thread(job));
    job.seed = state.seed;
    job.offset = state.offset;
  }
  job.errors = errors_of(context);
  launch(context, &KernelTable::random, job);
}

// In memory order.
Tensor fill_with(RandomJob job, const Tensor& x) {
  if (x.is_meta() || x.numel() == 0) return x;
  const KernelContext context(x.device());
  const Tensor ordered = permuted(x, memory_order(x.sizes(), x.strides()));
  const Tensor dense =
      ordered.is_contiguous() ? ordered : Tensor::empty(ordered.sizes(), ordered.dtype(), ordered.device());
  launch_draw(job, context, dense);
  if (!dense.is_same(ordered)) copy_elements(ordered, dense);
  return x;
}

Tensor fill_real(RandomUse use, const Tensor& x, double a, double b, const char* op) {
  if (!is_floating(x.dtype())) fail_dtype(op, x.dtype());
  RandomJob job;
  job.use = use;
  job.is_wide = x.dtype() == DType::kFloat64;
  job.a = a;
  job.b = b;
  return fill_with(job, x);
}

Tensor uniform_cuda(const Tensor& x, double from, double to, const Value& generator) {
  check_random_target(x, "uniform_");
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  if (x.is_meta() || !is_complex(x.dtype())) return fill_real(RandomUse::kUniform, x, from, to, "uniform_");
  uniform_cuda(as_real_pairs(x), from, to, generator);
  return x;
}
Tensor normal_cuda(const Tensor& x, double mean, double deviation, const Value& generator) {
  check_random_target(x, "normal_");
  check(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  if (x.is_meta() || !is_complex(x.dtype())) return fill_real(RandomUse::kNormal, x, mean, deviation, "normal_");
  normal_cuda(as_real_pairs(x), mean, deviation / std::sqrt(2.0), generator);  // the variance is of both parts
  return x;
}
IMPL("aten::uniform_", kCUDA, uniform_cuda);
IMPL("aten::normal_", kCUDA, normal_cuda);

IMPL("aten::exponential_", kCUDA, [](const Tensor& x, double rate, const Value&) {
  check(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  check_random_target(x, "exponential_");
  return fill_real(RandomUse::kExponential, x, rate, 0, "exponential_");
});
IMPL("aten::cauchy_", kCUDA, [](const Tensor& x, double median, double sigma, const Value&) {
  check(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  check_random_target(x, "cauchy_");
  return fill_real(RandomUse::kCauchy, x, median, sigma, "cauchy_");
});
IMPL("aten::log_normal_", kCUDA, [](const Tensor& x, double mean, double deviation, const Value&) {
  check(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  check_random_target(x, "log_normal_");
  return fill_real(RandomUse::kLogNormal, x, mean, deviation, "log_normal_");
});

// Of any dtype.
Tensor fill_steps(RandomUse use, const Tensor& x, double chance) {
  RandomJob job;
  job.use = use;
  job.is_wide = x.dtype() == DType::kFloat64;
  job.a = chance;
  return fill_with(job, x);
}
IMPL("aten::geometric_", kCUDA, [](const Tensor& x, double p, const Value&) {
  check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  check_random_target(x, "geometric_");
  check(x.dtype() != DType::kBool, "geometric_: not implemented for bool");
  return fill_steps(RandomUse::kGeometric, x, p);
});
Tensor bernoulli_cuda(const Tensor& x, double p, const Value&) {
  check_random_target(x, "bernoulli_");
  check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill_steps(RandomUse::kBernoulli, x, p);
}
IMPL("aten::bernoulli_.float", kCUDA, bernoulli_cuda);
IMPL("aten::bernoulli.p", kCUDA,
     [](const Tensor& x, double p, const Value& generator) { return bernoulli_cuda(x.clone(), p, generator); });

// --- whole numbers

Tensor fill_whole_cuda(const Tensor& x, uint64_t range, int64_t base, bool is_wide) {
  check_random_target(x, "random_");
  RandomJob job;
  job.use = RandomUse::kWhole;
  job.is_wide = is_wide;
  job.range = range;
  job.base = base;
  return fill_with(job, x);
}
Tensor fill_range(const Tensor& x, int64_t low, int64_t high) {
  check(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return fill_whole_cuda(x, range, low, range >= uint64_t{1} << 32);
}
// Up to the largest integer to which the dtype represents all.
Tensor fill_all(const Tensor& x, const Value&) {
  const auto above = [](auto largest) { return static_cast<uint64_t>(largest) + 1; };
  switch (x.dtype()) {
    case DType::kBool: return fill_whole_cuda(x, 2, 0, false);
    case DType::kFloat64: return fill_whole_cuda(x, (uint64_t{1} << 53) + 1, 0, true);
    case DType::kFloat32: return fill_whole_cuda(x, (uint64_t{1} << 24) + 1, 0, false);
    case DType::kFloat16: return fill_whole_cuda(x, (uint64_t{1} << 11) + 1, 0, false);
    case DType::kBFloat16: return fill_whole_cuda(x, (uint64_t{1} << 8) + 1, 0, false);
    case DType::kUInt8: return fill_whole_cuda(x, above(std::numeric_limits<uint8_t>::max()), 0, false);
    case DType::kInt8: return fill_whole_cuda(x, above(std::numeric_limits<int8_t>::max()), 0, false);
    case DType::kInt16: return fill_whole_cuda(x, above(std::numeric_limits<int16_t>::max()), 0, false);
    case DType::kInt32: return fill_whole_cuda(x, above(std::numeric_limits<int32_t>::max()), 0, false);
    case DType::kInt64: return fill_whole_cuda(x, above(std::numeric_limits<int64_t>::max()), 0, true);
    default: fail_dtype("random_", x.dtype());
  }
}
IMPL("aten::random_", kCUDA, fill_all);
IMPL("aten::random_.from", kCUDA, [](const Tensor& x, int64_t low, std::optional<int64_t> high, const Value&) {
  return fill_range(x, low, high.value_or(INT64_MAX));
});
IMPL("aten::random_.to", kCUDA, [](const Tensor& x, int64_t high, const Value&) { return fill_range(x, 0, high); });

// --- one draw for each element of other tensors

void draw_each(RandomUse use, const KernelContext& context, const Tensor& first, const Tensor& second,
               const Tensor& out) {
  if (out.numel() == 0) return;
  const auto wide = [](const Tensor& x) { return x.to(DType::kFloat64).contiguous(); };
  const Tensor a = wide(first), b = second ? wide(second) : second;
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype(), out.device());
  RandomJob job;
  job.use = use;
  job.first = a.raw_data();
  if (b) job.second = b.raw_data();
  launch_draw(job, context, dense);
  if (!dense.is_same(out)) copy_elements(out, dense);
}
IMPL("aten::poisson", kCUDA, [](const KernelContext& context, const Tensor& rates, const Value&, Tensor& out) {
  draw_each(RandomUse::kPoisson, context, rates, {}, out);
});
IMPL("aten::binomial", kCUDA,
     [](const KernelContext& context, const Tensor& count, const Tensor& prob, const Value&, Tensor& out) {
       draw_each(RandomUse::kBinomial, context, expand(count, out.sizes()), expand(prob, out.sizes()), out);
     });
IMPL("aten::bernoulli", kCUDA, [](const Tensor& chances, const Value&) {
  if (chances.is_meta()) return Tensor::meta(chances.sizes(), chances.dtype(), chances.device());
  if (!is_floating(chances.dtype())) fail_dtype("bernoulli", chances.dtype());
  const Tensor out = Tensor::empty(chances.sizes(), chances.dtype(), chances.device());
  draw_each(RandomUse::kChances, KernelContext(chances.device()), chances, {}, out);
  return out;
});

// --- dropout

Tensor kept_cuda(const Tensor& x, const Tensor& mask, double scale) {
  const DType loop = x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return ops::mul(x.to(loop), ops::mul(mask.to(loop), Scalar(scale)));
}
IMPL("aten::native_dropout", kCUDA,
     [](const KernelContext&, const Tensor& x, double p, std::optional<bool> train, Tensor& out, Tensor& mask) {
       if (!train.value_or(true)) {
         ops::fill_(mask, Scalar(true));
         return out.copy_from(x);
       }
       bernoulli_cuda(mask, 1 - p, Value());
       out.copy_from(kept_cuda(x, mask, kept_scale(p, x.dtype())));
     });
IMPL("aten::native_dropout_backward", kCUDA,
     [](const KernelContext&, const Tensor& g, const Tensor& mask, double scale, Tensor& out) {
       out.copy_from(kept_cuda(g, mask, scale));
     });

}  // namespace
}  // namespace tensord::kernels
