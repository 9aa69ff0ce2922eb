#include "kernels/complex/parts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/loops.h"
#include "ops/factory.h"
#include "ops/pointwise.h"

namespace tensord::kernels::complex_parts {

using ops::Op;
using ops::Returns;
using ops::TypeKind;
using ops::Value;

namespace {

Tensor part_of(const Tensor& x, int64_t part) {
  const Tensor pairs = as_real_pairs(x);
  const size_t ndim = x.sizes().size();
  return pairs.as_view(Dims(pairs.sizes().span().first(ndim)), Dims(pairs.strides().span().first(ndim)),
                       pairs.offset() + part);
}

}  // namespace

Tensor real_of(const Tensor& x) { return is_complex(x.dtype()) ? part_of(x, 0) : x; }
Tensor imag_of(const Tensor& x) {
  if (is_complex(x.dtype())) return part_of(x, 1);
  if (x.is_meta()) return Tensor::meta(x.sizes(), x.dtype(), x.device());
  return ops::zeros_like(x);
}

Tensor combine(const Tensor& real, const Tensor& imag) {
  check_internal(real.sizes() == imag.sizes() && real.dtype() == imag.dtype(), "parts of different shapes");
  const DType dtype = complex_dtype(real.dtype());
  const bool is_dense = is_non_overlapping_and_dense(real.sizes(), real.strides());
  const Dims strides = is_dense ? real.strides() : contiguous_strides(real.sizes());
  if (real.is_meta()) return Tensor::meta_strided(real.sizes(), strides, dtype, real.device());
  const Tensor out = Tensor::empty_strided(real.sizes(), strides, dtype, real.device());
  part_of(out, 0).copy_from(real);
  part_of(out, 1).copy_from(imag);
  return out;
}

int argument_of(const Op& op, std::string_view name) { return op.schema.find_argument(name); }

namespace {

enum class Use { kBoth, kPart, kNumber, kDtype };

// What happens to an argument.
Use use_of(const ops::Argument& argument) {
  if (argument.enum_name == "ScalarType") return Use::kDtype;
  const ops::Type* type = argument.type.get();
  while (type->kind() == TypeKind::kOptional || type->kind() == TypeKind::kList) type = type->element().get();
  if (type->kind() == TypeKind::kNumber) {
    return argument.name == "value" || argument.name == "fill_value" ? Use::kNumber : Use::kBoth;
  }
  if (type->kind() != TypeKind::kTensor) return Use::kBoth;
  static constexpr std::string_view kPositions[] = {"index", "indices", "mask", "condition", "repeats", "lengths"};
  return std::find(std::begin(kPositions), std::end(kPositions), argument.name) == std::end(kPositions) ? Use::kPart
                                                                                                        : Use::kBoth;
}

Value part_of_value(const Value& value, bool imaginary) {
  if (value.is_tensor()) return imaginary ? imag_of(value.to_tensor()) : real_of(value.to_tensor());
  if (!value.is_list()) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_list()->items) items.push_back(part_of_value(item, imaginary));
  return ops::make_list(value.to_list()->element, std::move(items));
}

// Indices and masks go to both parts unchanged. Complex ones would be dispatched here again.
void refuse_complex(const ops::Argument& argument, const Value& value) {
  if (value.is_list()) {
    for (const Value& item : value.to_list()->items) refuse_complex(argument, item);
  } else if (value.is_tensor() && is_complex(value.to_tensor().dtype())) {
    fail(ErrorCode::kInvalidArgument, "expected no complex numbers as '", argument.name, "'");
  }
}

std::vector<Value> parts_of(const Op& op, std::span<const Value> arguments, bool imaginary) {
  std::vector<Value> parts(arguments.begin(), arguments.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    switch (use_of(op.schema.arguments[i])) {
      case Use::kBoth: refuse_complex(op.schema.arguments[i], parts[i]); break;
      case Use::kPart: parts[i] = part_of_value(parts[i], imaginary); break;
      case Use::kNumber:
        if (parts[i].is_none()) break;
        parts[i] = imaginary ? parts[i].to_complex().imag() : parts[i].to_complex().real();
        break;
      case Use::kDtype:
        if (parts[i].is_none()) break;
        if (!is_complex(parts[i].to_dtype())) {
          fail(ErrorCode::kUnimplemented, "complex elements with a dtype of ", name_of(parts[i].to_dtype()));
        }
        parts[i] = real_dtype(parts[i].to_dtype());
        break;
    }
  }
  return parts;
}

Value joined(const Value& real, const Value& imag) {
  if (real.is_tensor()) return combine(real.to_tensor(), imag.to_tensor());
  if (!real.is_list()) return real;
  std::vector<Value> items;
  for (size_t i = 0; i < real.to_list()->items.size(); ++i) {
    items.push_back(joined(real.to_list()->items[i], imag.to_list()->items[i]));
  }
  return ops::make_list(real.to_list()->element, std::move(items));
}

Returns by_parts(const Op& op, std::span<const Value> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema.arguments[i].alias.is_write && !is_complex(arguments[i].to_tensor().dtype())) {
      fail(ErrorCode::kInvalidArgument, "complex numbers cannot be written into a tensor of ",
           name_of(arguments[i].to_tensor().dtype()));
    }
  }
  for (const char* name : {"src", "source"}) {
    const int source = argument_of(op, name);
    if (source < 0) continue;
    const DType self = arguments[0].to_tensor().dtype(),
                given = arguments[static_cast<size_t>(source)].to_tensor().dtype();
    check(self == given, "self and source expected to have the same dtype, but got (self) ", name_of(self),
          " and (source) ", name_of(given));
  }
  const std::vector<Value> real = ops::run(op, parts_of(op, arguments, false));
  const std::vector<Value> imag = ops::run(op, parts_of(op, arguments, true));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema.arguments[i].alias.is_write) return {{arguments[i]}};
  }
  Returns out;
  for (size_t i = 0; i < real.size(); ++i) out.values.push_back(joined(real[i], imag[i]));
  return out;
}

std::vector<std::string_view> words_of(std::string_view names) {
  std::vector<std::string_view> out;
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (end > 0) out.push_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

// Makes the parts dense, since products read them several times.
std::array<Tensor, 2> dense_parts(const Tensor& x) {
  if (!is_complex(x.dtype())) return {x.contiguous(), Tensor()};
  return {real_of(x).contiguous(), imag_of(x).contiguous()};
}

Tensor bilinear(const Op& op, std::span<const Value> arguments, size_t first, size_t second) {
  const DType dtype = promote_types(arguments[first].to_tensor().dtype(), arguments[second].to_tensor().dtype());
  for (const size_t i : {first, second}) {
    // PyTorch's products want operands of one dtype. Only our own gradient formulas multiply a real tensor by a complex
    // one.
    const DType own = arguments[i].to_tensor().dtype();
    check(own == dtype || own == real_dtype(dtype), "expected both tensors to have the same dtype, but got ",
          name_of(arguments[first].to_tensor().dtype()), " and ", name_of(arguments[second].to_tensor().dtype()));
  }
  const auto a = dense_parts(arguments[first].to_tensor()), b = dense_parts(arguments[second].to_tensor());
  std::vector<Value> real(arguments.begin(), arguments.end());
  const auto product = [&](const Tensor& x, const Tensor& y) {
    real[first] = x;
    real[second] = y;
    return ops::run(op, real).front().to_tensor();
  };
  if (!a[1]) return combine(product(a[0], b[0]), product(a[0], b[1]));
  if (!b[1]) return combine(product(a[0], b[0]), product(a[1], b[0]));
  return combine(ops::sub(product(a[0], b[0]), product(a[1], b[1])),
                 ops::add(product(a[0], b[1]), product(a[1], b[0])));
}

}  // namespace

void add_by_parts(const char* names) {
  for (const std::string_view name : words_of(names)) {
    ops::ImplBuilder(std::string(name).c_str(), ops::kComplexComposite, [name](std::span<const Value> arguments) {
      return by_parts(ops::get_op(name), arguments);
    }).linear();
  }
}

void add_bilinear(const char* names, const char* first, const char* second) {
  for (const std::string_view name : words_of(names)) {
    ops::ImplBuilder(std::string(name).c_str(), ops::kComplexComposite, [=](std::span<const Value> arguments) {
      const Op& op = ops::get_op(name);
      return bilinear(op, arguments, static_cast<size_t>(argument_of(op, first)),
                      static_cast<size_t>(argument_of(op, second)));
    }).holomorphic();
  }
}

}  // namespace tensord::kernels::complex_parts
