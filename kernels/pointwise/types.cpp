// Type promotion, broadcasting and memory order of elementwise operators.
#include <algorithm>
#include <optional>

#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {

Numbers::Numbers(std::initializer_list<ops::Scalar> values) {
  size_t i = 0;
  for (const ops::Scalar& value : values) {
    floats[i] = value.to_double();
    // Only the floating-point loops use a double outside of int64's range.
    ints[i] = value.is_float() && !(value.to_double() > -9.2e18 && value.to_double() < 9.2e18) ? 0 : value.to_int();
    ++i;
  }
}

namespace {

std::optional<DType> combine(std::optional<DType> a, std::optional<DType> b) {
  if (!a) return b;
  if (!b) return a;
  return promote_types(*a, *b);
}

// bool < integers < floating point < complex.
int category(DType dtype) {
  if (is_complex(dtype)) return 3;
  return dtype == DType::kBool ? 0 : is_floating(dtype) ? 2 : 1;
}

// `high` wins unless `low` is of a higher category. Complex beside floating point keeps the wider of the two widths.
std::optional<DType> combine_ranks(std::optional<DType> high, std::optional<DType> low) {
  if (!high) return low;
  if (!low || category(*high) >= category(*low)) return high;
  if (is_floating(*high)) return *high == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
  return promote_types(*high, *low);
}

void refuse(std::string_view op, DType dtype) {
  fail(ErrorCode::kInvalidArgument, op, " is not defined for ", name_of(dtype));
}

}  // namespace

DType promote_operands(Operands operands) {
  std::optional<DType> dims, zero, numbers;
  for (const Operand& operand : operands) {
    if (operand.tensor == nullptr)
      numbers = combine(numbers, operand.number.dtype());
    else if (operand.tensor->ndim() > 0)
      dims = combine(dims, operand.tensor->dtype());
    else
      zero = combine(zero, operand.tensor->dtype());
  }
  return combine_ranks(dims, combine_ranks(zero, numbers)).value_or(DType::kFloat32);
}

DType compute_dtype(std::string_view op, TypeClass type_class, Operands operands) {
  const DType dtype = promote_operands(operands);
  if (is_complex(dtype)) fail_dtype(op, dtype);
  switch (type_class) {
    case TypeClass::kArithNoBool:
      if (dtype == DType::kBool) refuse(op, dtype);
      return dtype;
    case TypeClass::kArithBoolToInt: return dtype == DType::kBool ? DType::kInt64 : dtype;
    case TypeClass::kFloat: return is_floating(dtype) ? dtype : DType::kFloat32;
    case TypeClass::kFloatOnly:
      if (!is_floating(dtype)) refuse(op, dtype);
      return dtype;
    case TypeClass::kInteger:
      if (is_floating(dtype)) refuse(op, dtype);
      return dtype;
    case TypeClass::kIntegerNoBool:
      if (is_floating(dtype) || dtype == DType::kBool) refuse(op, dtype);
      return dtype;
    default: return dtype;
  }
}

namespace {

// PyTorch's order of dimensions for an output whose inputs disagree: innermost first, by the first operand with
// different strides; with equal strides the larger size is outside. Returns > 0 when dimension x belongs outside of y,
// < 0 for the opposite, and 0 if undecided.
int compare_dims(std::span<const Dims> strides, const Dims& sizes, int64_t x, int64_t y) {
  for (const Dims& s : strides) {
    if (s[x] == 0 || s[y] == 0) continue;
    if (s[x] != s[y]) return s[x] < s[y] ? -1 : 1;
    if (sizes[x] > sizes[y]) return 1;
  }
  return 0;
}

Dims mixed_strides(std::span<const Dims> strides, const Dims& sizes) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  std::array<int64_t, kMaxDims> order;  // innermost first
  for (int64_t i = 0; i < ndim; ++i) order[i] = ndim - 1 - i;
  // An insertion sort that copes with undecided pairs.
  for (int64_t i = 1; i < ndim; ++i) {
    int64_t moving = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int comparison = compare_dims(strides, sizes, order[j], order[moving]);
      if (comparison > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  Dims out(sizes.size(), 1);
  int64_t step = 1;
  for (int64_t i = 0; i < ndim; ++i) {
    out[order[i]] = step;
    step *= std::max<int64_t>(sizes[order[i]], 1);
  }
  return out;
}

}  // namespace

ops::TensorMeta infer_pointwise(Operands operands, DType dtype) {
  ops::TensorMeta meta;
  meta.dtype = dtype;
  const Tensor* first = nullptr;
  bool same_shape = true;
  for (const Operand& operand : operands) {
    if (operand.tensor == nullptr) continue;
    const Tensor& tensor = *operand.tensor;
    if (first == nullptr) {
      first = &tensor;
      meta.sizes = tensor.sizes();
      meta.device = tensor.device();
      continue;
    }
    if (tensor.ndim() > 0 && meta.sizes.empty()) meta.device = tensor.device();
    if (!(tensor.sizes() == meta.sizes)) {
      same_shape = false;
      meta.sizes = broadcast_sizes(meta.sizes, tensor.sizes());
    }
  }
  check(first != nullptr, "an elementwise operator needs a tensor");
  if (same_shape) {
    bool all_contiguous = true, all_equal = true;
    for (const Operand& operand : operands) {
      if (operand.tensor == nullptr) continue;
      all_contiguous = all_contiguous && operand.tensor->is_contiguous();
      all_equal = all_equal && operand.tensor->strides() == first->strides();
    }
    if (all_contiguous) return meta;
    if (all_equal && is_non_overlapping_and_dense(first->sizes(), first->strides())) {
      meta.strides = first->strides();
      return meta;
    }
  }
  std::array<Dims, 3> strides;
  size_t count = 0;
  for (const Operand& operand : operands) {
    if (operand.tensor == nullptr || operand.tensor->ndim() == 0) continue;
    strides[count++] = broadcast_strides(operand.tensor->sizes(), operand.tensor->strides(), meta.sizes);
  }
  Dims mixed = mixed_strides(std::span(strides.data(), count), meta.sizes);
  if (!is_contiguous(meta.sizes, mixed)) meta.strides = std::move(mixed);
  return meta;
}

}  // namespace tensord::kernels
