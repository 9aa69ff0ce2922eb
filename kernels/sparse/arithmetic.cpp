// Elementwise operators on sparse tensors: functions that keep zero, applied to the values; sums and products of two
// tensors.
#include "core/autograd/variable.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

// --- Zero-preserving functions, and predicates that are false at 0, are applied to values() only. The tensor is
// coalesced first, unless the function is linear.

bool is_linear(std::string_view name) { return name == "aten::neg" || name == "aten::positive"; }

auto on_values(const char* name) {
  return [name](Arguments v, Results& returns) {
    const SparseTensor& given = sparse_of(v[0]);
    const SparsePtr x = given.is_coo() && !is_linear(name) ? coalesced(given) : nullptr;
    Results arguments(v.begin(), v.end());
    arguments[0] = x ? x->values() : given.values();
    returns.push_back(with_values(x ? *x : given, ops::run(ops::get_op(name), arguments).front().to_tensor()));
  };
}

// The in-place variant of `name`: writes the values, which other handles of this tensor share.
auto in_place(const char* name) {
  return [name](Arguments v, Results& returns) {
    const SparseTensor& x = sparse_of(v[0]);
    if (x.is_of_module) fail(ErrorCode::kUnimplemented, "writes into a sparse tensor that belongs to the module");
    check(!x.is_coo() || x.is_coalesced() || is_linear(name),
          "in place is implemented for coalesced tensors; please call .coalesce() first");
    Results arguments(v.begin(), v.end());
    arguments[0] = x.values();
    ops::run(ops::get_op(concat(name, "_")), arguments);
    returns.push_back(v[0]);
  };
}

constexpr const char* kKeepZero[] = {
    "aten::abs",     "aten::asin",  "aten::asinh",    "aten::atan",       "aten::atanh",  "aten::ceil",
    "aten::deg2rad", "aten::erf",   "aten::erfinv",   "aten::expm1",      "aten::floor",  "aten::frac",
    "aten::log1p",   "aten::neg",   "aten::rad2deg",  "aten::relu",       "aten::round",  "aten::sgn",
    "aten::sign",    "aten::sin",   "aten::sinh",     "aten::sqrt",       "aten::square", "aten::tan",
    "aten::tanh",    "aten::trunc", "aten::positive", "aten::nan_to_num", "aten::relu6",  "aten::leaky_relu"};
constexpr const char* kQuestions[] = {"aten::isinf",    "aten::isnan",   "aten::isneginf",
                                      "aten::isposinf", "aten::signbit", "aten::conj_physical",
                                      "aten::angle",    "aten::real",    "aten::imag"};

[[maybe_unused]] const bool has_pointwise = [] {
  for (const char* name : kKeepZero) {
    const ops::ImplBuilder added(name, kSparseComposite, on_values(name));
    if (std::string_view(name) == "aten::positive") continue;
    const ops::ImplBuilder written(concat(name, "_"), kSparseComposite, in_place(name));
  }
  for (const char* name : kQuestions) const ops::ImplBuilder added(name, kSparseComposite, on_values(name));
  return true;
}();

IMPL("aten::zero_", kSparseComposite, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  if (x.is_of_module) fail(ErrorCode::kUnimplemented, "writes into a sparse tensor that belongs to the module");
  ops::zero_(x.values());
  returns.push_back(v[0]);
});
// 0 to the power of a positive number is 0.
IMPL("aten::pow.Tensor_Scalar", kSparseComposite, [](Arguments v, Results& returns) {
  const ops::Scalar power = v[1].to_scalar();
  check(!power.is_complex() && power.to_double() > 0, "is implemented for sparse tensors and positive powers");
  on_values("aten::pow.Tensor_Scalar")(v, returns);
});

// --- with numbers

// A number, or a dense tensor of one element and no dimensions.
bool is_number(const Value& value) {
  return value.is_number() || value.is_complex() || (value.is_strided() && value.to_tensor().ndim() == 0);
}

// Applies the dense operator to the values and a number. A sum of duplicates times a number is the sum of their
// products.
Value with_number(const char* name, const SparseTensor& x, Arguments v) {
  Results arguments(v.begin(), v.end());
  arguments[0] = x.values();
  return with_values(x, ops::run(ops::get_op(name), arguments).front().to_tensor());
}

// --- sums

Value scaled(const SparseTensor& x, const Value& alpha) {
  const ops::Scalar factor = alpha.to_scalar();
  const bool is_one = !factor.is_complex() && factor.to_double() == 1;
  return is_one ? with_values(x, x.values()) : with_values(x, ops::mul(x.values(), factor));
}

SparsePtr in_dtype(const SparseTensor& x, DType dtype) {
  const Tensor values = compose::to(x.values(), dtype);
  return SparseTensor::coo(x.sizes(), x.indices(), values, x.is_coalesced());
}

// The sum of two COO tensors of one shape has all elements of both, in order if both are.
SparsePtr joined(const SparseTensor& a, const SparseTensor& b) {
  check(a.sparse_dim() == b.sparse_dim(), "expected both tensors to have the same sparse dimensions, but got ",
        a.sparse_dim(), " and ", b.sparse_dim());
  const SparsePtr out = SparseTensor::coo(a.sizes(), ops::cat({a.indices(), b.indices()}, 1),
                                          ops::cat({a.values(), b.values()}, 0), false);
  return a.is_coalesced() && b.is_coalesced() ? coalesced(*out) : out;
}

Value add_sparse(const SparseTensor& a, const SparseTensor& b, const Value& alpha) {
  check(a.sizes() == b.sizes(), "expected sizes of both tensors to match, but got ", a.sizes(), " and ", b.sizes());
  check(a.sparse_layout() == b.sparse_layout(), "expected tensors of one layout, but got ", a.describe(), " and ",
        b.describe());
  const DType dtype = promote_types(a.dtype(), b.dtype());
  const SparsePtr left = in_dtype(*to_coo(a), dtype),
                  right = in_dtype(*to_coo(*ops::as_sparse(scaled(b, alpha))), dtype);
  return box(to_layout_of(*joined(*left, *right), a));
}

Tensor add_dense(const Tensor& a, const SparseTensor& b, const Value& alpha) {
  check(a.sizes() == b.sizes(), "expected sizes of both tensors to match, but got ", a.sizes(), " and ", b.sizes());
  return ops::add(a, to_dense(*ops::as_sparse(scaled(b, alpha))));
}

Value add(const Value& a, const Value& b, const Value& alpha, const char* name) {
  const SparseTensor *left = ops::as_sparse(a), *right = ops::as_sparse(b);
  if (left && right) return add_sparse(*left, *right, alpha);
  check(right != nullptr, name, "(sparse, dense) is not supported. Use ", name, "(dense, sparse) instead.");
  return add_dense(a.to_tensor(), *right, alpha);
}

IMPL("aten::add.Tensor", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(add(v[0], v[1], v[2], "add")); });
IMPL("aten::sub.Tensor", kSparseComposite, [](Arguments v, Results& returns) {
  const ops::Scalar alpha = v[2].to_scalar();
  const Value negative = alpha.is_complex() ? Value(-alpha.to_complex())
                         : alpha.is_float() ? Value(-alpha.to_double())
                                            : Value(-alpha.to_int());
  returns.push_back(add(v[0], v[1], negative, "sub"));
});
// Adds a sparse tensor to a dense one: row by row if rows can be found, without a dense copy of the sparse tensor.
Tensor add_in_place(const Tensor& to, const SparseTensor& b, const Value& alpha) {
  const bool has_rows =
      b.is_coo() && b.sparse_dim() > 0 && to.is_contiguous() && to.dtype() == b.dtype() && !is_complex(to.dtype());
  const bool is_recorded = is_grad_enabled() && (autograd::requires_grad(to) || autograd::requires_grad(b.values()));
  if (!has_rows || is_recorded) return ops::add_(to, to_dense(*ops::as_sparse(scaled(b, alpha))));
  const std::span sizes(b.sizes().data(), static_cast<size_t>(b.sparse_dim()));
  Dims rows{1};
  for (const int64_t size : sizes) rows[0] *= size;
  for (size_t d = sizes.size(); d < b.sizes().size(); ++d) rows.push_back(b.sizes()[d]);
  ops::index_add_(to.as_view(rows, contiguous_strides(rows), to.offset()), int64_t{0},
                  places_of(b.indices(), sizes).to(to.device()), b.values(), {.alpha = alpha.to_scalar()});
  return to;
}

// Adds a sparse tensor to a dense one.
IMPL("aten::add_.Tensor", kSparseComposite, [](Arguments v, Results& returns) {
  check(v[0].is_strided(), "adding to a sparse tensor in place is not supported; please use add");
  const SparseTensor& b = sparse_of(v[1]);
  check(v[0].to_tensor().sizes() == b.sizes(), "expected sizes of both tensors to match, but got ",
        v[0].to_tensor().sizes(), " and ", b.sizes());
  returns.emplace_back(add_in_place(v[0].to_tensor(), b, v[2]));
});

// --- products

// The elements that both operands have.
Value mul_sparse(const SparseTensor& a, const SparseTensor& b) {
  check(a.sizes() == b.sizes(), "mul operands have incompatible sizes: ", a.sizes(), " and ", b.sizes());
  check(a.sparse_layout() == b.sparse_layout(), "expected tensors of one layout, but got ", a.describe(), " and ",
        b.describe());
  const SparsePtr left = coalesced(*to_coo(a)), right = coalesced(*to_coo(b));
  check(left->sparse_dim() == right->sparse_dim(), "expected both tensors to have the same sparse dimensions");
  const std::span sizes(a.sizes().data(), static_cast<size_t>(left->sparse_dim()));
  const Tensor p = places_of(left->indices(), sizes), q = places_of(right->indices(), sizes);
  const SharedPlaces shared = shared_places(p, q);
  const Tensor values = ops::mul(gather_rows(vector_of(shared.from_left), left->values()),
                                 gather_rows(vector_of(shared.from_right), right->values()));
  return box(to_layout_of(*SparseTensor::coo(a.sizes(), indices_of(shared.places, sizes), values, true), a));
}

// The dense tensor's elements at the indices of the sparse one.
Tensor at_places(const Tensor& dense, const SparseTensor& coo) {
  const int64_t dims = coo.sparse_dim();
  const std::span sizes(coo.sizes().data(), static_cast<size_t>(dims));
  check(broadcast_sizes(dense.sizes(), coo.sizes()) == coo.sizes(), "a dense tensor of sizes ", dense.sizes(),
        " does not broadcast to the sparse one's ", coo.sizes());
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  Dims rows{count};
  for (size_t d = static_cast<size_t>(dims); d < coo.sizes().size(); ++d) rows.push_back(coo.sizes()[d]);
  return gather_rows(places_of(coo.indices(), sizes), ops::reshape(ops::expand(dense, coo.sizes()), rows));
}

Value combine_dense(const char* name, const SparseTensor& x, const Tensor& dense, bool is_first) {
  const SparsePtr coo = to_coo(x);
  const Tensor other = at_places(dense, *coo);
  const Tensor values =
      is_first ? ops::call_by_name(name, coo->values(), other) : ops::call_by_name(name, other, coo->values());
  return box(to_layout_of(*SparseTensor::coo(x.sizes(), coo->indices(), values, coo->is_coalesced()), x));
}

IMPL("aten::mul.Tensor", kSparseComposite, [](Arguments v, Results& returns) {
  const SparseTensor *a = ops::as_sparse(v[0]), *b = ops::as_sparse(v[1]);
  if (a && b) return returns.push_back(mul_sparse(*a, *b));
  const SparseTensor& x = a ? *a : *b;
  const Tensor& other = (a ? v[1] : v[0]).to_tensor();
  returns.push_back(other.ndim() == 0 ? with_values(x, ops::mul(x.values(), other))
                                      : combine_dense("aten::mul.Tensor", x, other, true));
});
IMPL("aten::mul.Scalar", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(with_number("aten::mul.Scalar", sparse_of(v[0]), v)); });

// Only division by numbers: an element that is not stored would be 0 / 0.
IMPL("aten::div.Tensor", kSparseComposite, [](Arguments v, Results& returns) {
  check(is_number(v[1]), "Sparse division requires a scalar or zero-dim dense tensor divisor");
  const SparseTensor& x = sparse_of(v[0]);
  returns.push_back(with_values(x, ops::div(x.values(), v[1].to_tensor())));
});
IMPL("aten::div.Scalar", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(with_number("aten::div.Scalar", sparse_of(v[0]), v)); });
// With rounding, duplicates are summed first.
IMPL("aten::div.Scalar_mode", kSparseComposite, on_values("aten::div.Scalar_mode"));
IMPL("aten::floor_divide.Scalar", kSparseComposite, on_values("aten::floor_divide.Scalar"));

// In place, with numbers.
auto times_in_place(const char* name) {
  return [name](Arguments v, Results& returns) {
    const SparseTensor& x = sparse_of(v[0]);
    if (x.is_of_module) fail(ErrorCode::kUnimplemented, "writes into a sparse tensor that belongs to the module");
    check(is_number(v[1]), "in place is implemented for sparse tensors and numbers");
    ops::call_by_name(name, x.values(), v[1]);
    returns.push_back(v[0]);
  };
}
IMPL("aten::mul_.Scalar", kSparseComposite, times_in_place("aten::mul_.Scalar"));
IMPL("aten::mul_.Tensor", kSparseComposite, times_in_place("aten::mul_.Tensor"));
IMPL("aten::div_.Scalar", kSparseComposite, times_in_place("aten::div_.Scalar"));
IMPL("aten::div_.Tensor", kSparseComposite, times_in_place("aten::div_.Tensor"));

// --- masks: the elements of the first operand at the indices of the second

SPARSE_OP("aten::sparse_mask", [](Arguments v, Results& returns) {
  const SparseTensor& mask = sparse_of(v[1]);
  check((v[0].is_strided() ? v[0].to_tensor().sizes() : sparse_of(v[0]).sizes()) == mask.sizes(),
        "sparse_mask(): operands have incompatible sizes");
  const Tensor dense = v[0].is_strided() ? v[0].to_tensor() : to_dense(sparse_of(v[0]));
  const SparsePtr coo = mask.is_coo() ? coalesced(mask) : to_coo(mask);
  returns.push_back(box(to_layout_of(
      *SparseTensor::coo(mask.sizes(), coo->indices(), at_places(dense, *coo), coo->is_coalesced()), mask)));
});

}  // namespace
}  // namespace tensord::kernels
