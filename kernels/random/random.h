#pragma once

#include "core/base/cancellation.h"
#include "core/ops/attributes/written.h"
#include "core/ops/generator.h"
#include "core/tensor/memory_order.h"
#include "kernels/expr/expr.h"
#include "kernels/index/index.h"

// What operators that fill a tensor with random numbers share.
namespace tensord::kernels {

// Calls draw() once per element, in the order of memory, and stores what it gives.
template <class T, class Draw>
void fill_elements(const Tensor& x, Draw&& draw) {
  T* to = x.data<T>();
  if (x.is_contiguous()) {
    return in_pieces(x.numel(), kPieceElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = draw();
    });
  }
  const Tensor ordered = permuted(x, memory_order(x.sizes(), x.strides()));
  for (int64_t offset : element_offsets(ordered.sizes(), ordered.strides())) to[offset] = draw();
}

inline void check_random_target(const Tensor& x, const char* op) {
  check(x.is_meta() || x.storage()->ensure_writable(), op, ": the tensor is read-only");
  ops::check_no_internal_overlap(x);
}

// What is random does not change with the tensor it is put into, or with probabilities.
inline const gradient::GradientFn kZeroGradient =
    gradient::of_first([](const ops::GradArgs& args, const Tensor&) { return gradient::zeros_like(args.inputs[0]); });

}  // namespace tensord::kernels
