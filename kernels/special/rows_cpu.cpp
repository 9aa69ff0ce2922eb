// CPU loops of special.def. One build for all instruction sets: the functions branch, and vector code gains nothing.
#include "kernels/base/math.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/special/functions.h"

#define TENSORD_TABLE "kernels/pointwise/special.def"
namespace tensord::kernels::formula::special_rows {
namespace {
#include "kernels/pointwise/rows-inl.h"
}  // namespace
}  // namespace tensord::kernels::formula::special_rows
#undef TENSORD_TABLE

namespace tensord::kernels {
void fill_special_rows(FormulaRows* rows) { formula::special_rows::fill_rows(rows); }
}  // namespace tensord::kernels
