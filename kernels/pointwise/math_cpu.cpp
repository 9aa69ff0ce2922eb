// CPU loops of kernels/pointwise/math.def, one set per instruction set.
#include "kernels/pointwise/gamma.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/rounded_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/math_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#define TENSORD_TABLE "kernels/pointwise/math.def"
HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::formula::HWY_NAMESPACE::math_rows {
#include "kernels/pointwise/rows-inl.h"
}
namespace tensord::kernels::formula::HWY_NAMESPACE {
void fill_math(FormulaRows* rows) { math_rows::fill_rows(rows); }
}  // namespace tensord::kernels::formula::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#undef TENSORD_TABLE

#if HWY_ONCE
namespace tensord::kernels {
namespace formula {
HWY_EXPORT(fill_math);
static void fill(FormulaRows* rows) { HWY_DYNAMIC_DISPATCH(fill_math)(rows); }
}  // namespace formula
void fill_math_rows(FormulaRows* rows) { formula::fill(rows); }
}  // namespace tensord::kernels
#endif
