// CPU loops of kernels/pointwise/activation.def, one set per instruction set.
#include "kernels/base/math.h"
#include "kernels/pointwise/pointwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/activation_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#define TENSORD_TABLE "kernels/pointwise/activation.def"
HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::formula::HWY_NAMESPACE::activation_rows {
#include "kernels/pointwise/rows-inl.h"
}
namespace tensord::kernels::formula::HWY_NAMESPACE {
void fill_activation(FormulaRows* rows) { activation_rows::fill_rows(rows); }
}  // namespace tensord::kernels::formula::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#undef TENSORD_TABLE

#if HWY_ONCE
namespace tensord::kernels {
namespace formula {
HWY_EXPORT(fill_activation);
static void fill(FormulaRows* rows) { HWY_DYNAMIC_DISPATCH(fill_activation)(rows); }
}  // namespace formula
void fill_activation_rows(FormulaRows* rows) { formula::fill(rows); }
}  // namespace tensord::kernels
#endif
