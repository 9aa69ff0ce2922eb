// Masks drawn in the same order as PyTorch, and elements kept by them.
#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/generator.h"
#include "core/ops/op.h"
#include "core/tensor/memory_order.h"
#include "kernels/random/dropout.h"

namespace tensord::kernels {

double kept_scale(double p, DType dtype) {
  if (p == 1) return 0;
  return dtype == DType::kFloat64 ? 1.0 / (1.0 - p) : static_cast<double>(1.0f / static_cast<float>(1.0 - p));
}

namespace {

using ops::KernelContext;

// Draws in memory order, as PyTorch does. REQUIRES: the mask is dense.
void draw_mask(double keep, const Tensor& mask) {
  constexpr int64_t kAtOnce = 2048;
  uint32_t bits[2 * kAtOnce];
  auto* kept = static_cast<uint8_t*>(mask.raw_data());
  ops::Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  for (int64_t i = 0; i < mask.numel(); i += kAtOnce) {
    const int64_t count = std::min(kAtOnce, mask.numel() - i);
    generator.fill_bits32(std::span(bits, static_cast<size_t>(2 * count)));
    draw_below(bits, keep, kept + i, count);
  }
}

// REQUIRES: the tensors have the same sizes; out is dense.
void scale_kept(const Tensor& x, const Tensor& mask, double scale, const Tensor& out) {
  if (!out.is_contiguous()) {
    const Dims order = memory_order(out.sizes(), out.strides());
    return scale_kept(permuted(x, order), permuted(mask, order), scale, permuted(out, order));
  }
  const Tensor row_major = mask.contiguous();
  const auto* kept = static_cast<const uint8_t*>(row_major.raw_data());
  const auto run = [&]<class T>() {
    const Tensor from = x.to(dtype_of<T>).contiguous();
    const Tensor to = out.dtype() == dtype_of<T> ? out : Tensor::empty(out.sizes(), dtype_of<T>);
    const T *in = from.data<T>(), by = static_cast<T>(scale);
    T* result = to.data<T>();
    parallel_for_cost(out.numel(), 0.3, [&](int64_t begin, int64_t end) {
      apply_mask(in + begin, kept + begin, by, result + begin, end - begin);
    });
    if (!to.is_same(out)) out.copy_from(to);
  };
  if (out.dtype() == DType::kFloat64)
    run.template operator()<double>();
  else
    run.template operator()<float>();
}

IMPL("aten::native_dropout", kCPU,
     [](const KernelContext&, const Tensor& x, double p, std::optional<bool> train, Tensor& out, Tensor& mask) {
       if (train.value_or(true)) {
         draw_mask(1 - p, mask);
         return scale_kept(x, mask, kept_scale(p, x.dtype()), out);
       }
       std::fill_n(mask.data<bool>(), mask.numel(), true);
       out.copy_from(x);
     });
IMPL("aten::native_dropout_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const Tensor& mask, double scale, Tensor& out) {
       scale_kept(g, mask, scale, out);
     });

}  // namespace
}  // namespace tensord::kernels
