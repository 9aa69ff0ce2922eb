// CPU loops of kernels/pointwise/arith.def, one set per instruction set.
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/rounded_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/arith_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#define TENSORD_TABLE "kernels/pointwise/arith.def"
HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::formula::HWY_NAMESPACE::arith_rows {
#include "kernels/pointwise/rows-inl.h"
}
namespace tensord::kernels::formula::HWY_NAMESPACE {
void fill_arith(FormulaRows* rows) { arith_rows::fill_rows(rows); }
}  // namespace tensord::kernels::formula::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#undef TENSORD_TABLE

#if HWY_ONCE
namespace tensord::kernels {
namespace formula {
HWY_EXPORT(fill_arith);
static void fill(FormulaRows* rows) { HWY_DYNAMIC_DISPATCH(fill_arith)(rows); }
}  // namespace formula
void fill_arith_rows(FormulaRows* rows) { formula::fill(rows); }
}  // namespace tensord::kernels
#endif
