// Products of two f64 matrices, for each instruction set.
#include "kernels/gemm/product.h"

#include <algorithm>

#include "core/base/cancellation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/product_f64_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

using TileT = double;
#include "kernels/gemm/product-inl.h"

}  // namespace

void multiply_matrices(const ProductShape& shape, const double* left, const double* right, double* out, int64_t begin,
                       int64_t end, double* scratch) {
  static_assert(kProductScratch <= kMaxProductScratch);
  Product(shape, left, right, out, scratch).run(begin, end);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(multiply_matrices);

void multiply(const ProductShape& shape, const double* left, const double* right, double* out, int64_t begin,
              int64_t end, double* scratch) {
  HWY_DYNAMIC_DISPATCH(multiply_matrices)(shape, left, right, out, begin, end, scratch);
}

}  // namespace tensord::kernels
#endif
