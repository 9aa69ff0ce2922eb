// Reductions of complex tensors other than sums.
#include "core/ops/complex.h"
#include "kernels/complex/parts.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::narrow;
using ops::Returns;
using ops::Value;

Tensor real(const Tensor& x) { return ops::real(x); }
Tensor imag(const Tensor& x) { return ops::imag(x); }

// The operator with another tensor as its first argument.
std::vector<Value> run_with(const char* name, std::span<const Value> arguments, const Tensor& self) {
  std::vector<Value> given(arguments.begin(), arguments.end());
  given[0] = self;
  return ops::run(ops::get_op(name), given);
}

// --- reductions of magnitudes and of truth values

#define OF_SIZES(NAME)                                                                      \
  IMPL(NAME, ops::kComplexComposite, [](std::span<const Value> v) -> Returns {              \
    std::vector<Value> given(v.begin(), v.end());                                           \
    given[0] = ops::abs(v[0].to_tensor());                                                  \
    const ops::Op& op = ops::get_op(NAME);                                                  \
    for (size_t i = 1; i < given.size(); ++i) {                                             \
      if (op.schema.arguments[i].enum_name != "ScalarType" || given[i].is_none()) continue; \
      given[i] = real_dtype(given[i].to_dtype());                                           \
    }                                                                                       \
    return {ops::run(op, given)};                                                           \
  })
OF_SIZES("aten::norm.Scalar");
OF_SIZES("aten::norm.ScalarOpt_dtype");
OF_SIZES("aten::norm.ScalarOpt_dim");
OF_SIZES("aten::norm.ScalarOpt_dim_dtype");
OF_SIZES("aten::linalg_vector_norm");
#undef OF_SIZES

#define OF_TRUTH(NAME)               \
  IMPL(NAME, ops::kComplexComposite, \
       [](std::span<const Value> v) -> Returns { return {run_with(NAME, v, ops::ne(v[0].to_tensor(), 0))}; })
OF_TRUTH("aten::any");
OF_TRUTH("aten::any.dim");
OF_TRUTH("aten::all");
OF_TRUTH("aten::all.dim");
OF_TRUTH("aten::count_nonzero");
OF_TRUTH("aten::count_nonzero.dim_IntList");
OF_TRUTH("aten::nonzero");
OF_TRUTH("aten::nonzero_numpy");
OF_TRUTH("aten::argwhere");
OF_TRUTH("aten::where");
#undef OF_TRUTH

// --- variances: the sum of those of the real and the imaginary parts

#define VARIANCE(OVERLOAD)                                                                                     \
  IMPL("aten::var" OVERLOAD, ops::kComplexComposite, [](std::span<const Value> v) -> Returns {                 \
    const Tensor& x = v[0].to_tensor();                                                                        \
    const Tensor a = run_with("aten::var" OVERLOAD, v, real(x)).front().to_tensor();                           \
    return {{ops::add(a, run_with("aten::var" OVERLOAD, v, imag(x)).front().to_tensor())}};                    \
  });                                                                                                          \
  IMPL("aten::std" OVERLOAD, ops::kComplexComposite, [](std::span<const Value> v) -> Returns {                 \
    return {{ops::sqrt(ops::run(ops::get_op("aten::var" OVERLOAD), v).front().to_tensor())}};                  \
  });                                                                                                          \
  IMPL("aten::var_mean" OVERLOAD, ops::kComplexComposite, [](std::span<const Value> v) -> Returns {            \
    const auto a = run_with("aten::var_mean" OVERLOAD, v, real(v[0].to_tensor()));                             \
    const auto b = run_with("aten::var_mean" OVERLOAD, v, imag(v[0].to_tensor()));                             \
    return {{ops::add(a[0].to_tensor(), b[0].to_tensor()), ops::complex(a[1].to_tensor(), b[1].to_tensor())}}; \
  });                                                                                                          \
  IMPL("aten::std_mean" OVERLOAD, ops::kComplexComposite, [](std::span<const Value> v) -> Returns {            \
    const auto found = ops::run(ops::get_op("aten::var_mean" OVERLOAD), v);                                    \
    return {{ops::sqrt(found[0].to_tensor()), found[1]}};                                                      \
  })
VARIANCE("");
VARIANCE(".dim");
VARIANCE(".correction");
#undef VARIANCE

// --- products: by halving, and scans by doubling steps, so that their gradients divide by nothing, not by zeros either

Tensor product_along(Tensor x, int64_t dim) {
  if (x.size(dim) == 0) return ops::add(ops::sum(x, Dims{dim}, true), 1);
  if (x.size(dim) == 1) return ops::clone(x);  // not a view of an argument
  while (x.size(dim) > 1) {
    const int64_t size = x.size(dim), half = size / 2;
    const Tensor product = ops::mul(narrow(x, dim, 0, half), narrow(x, dim, half, half));
    x = size % 2 == 0 ? product : ops::cat({product, narrow(x, dim, size - 1, 1)}, dim);
  }
  return x;
}
Tensor converted(const Tensor& x, std::optional<DType> dtype) { return dtype ? compose::to(x, *dtype) : x; }
IMPL("aten::prod", ops::kComplexComposite, [](const Tensor& x, std::optional<DType> dtype) {
  return ops::squeeze(product_along(ops::reshape(converted(x, dtype), Dims{-1}), 0), 0);
});
IMPL("aten::prod.dim_int", ops::kComplexComposite,
     [](const Tensor& given, int64_t dim, bool keepdim, std::optional<DType> dtype) {
       const Tensor x = converted(given, dtype);
       if (x.ndim() == 0) {
         wrap_dim(dim, 0);
         return ops::clone(x);
       }
       const Tensor product = product_along(x, wrap_dim(dim, x.ndim()));
       return keepdim ? product : ops::squeeze(product, dim);
     });
IMPL("aten::cumprod", ops::kComplexComposite, [](const Tensor& given, int64_t dim, std::optional<DType> dtype) {
  Tensor x = converted(given, dtype);
  if (x.ndim() == 0 || x.numel() == 0) {
    wrap_dim(dim, x.ndim());
    return ops::clone(x);
  }
  const int64_t size = x.size(dim);
  if (size == 1) return ops::clone(x);
  for (int64_t step = 1; step < size; step *= 2) {
    const Tensor later = ops::mul(narrow(x, dim, step, size - step), narrow(x, dim, 0, size - step));
    x = ops::cat({narrow(x, dim, 0, step), later}, dim);
  }
  return x;
});

}  // namespace
}  // namespace tensord::kernels
