#include "core/tensor/dtype.h"

#include <iterator>

namespace tensord {
namespace {

struct Info {
  size_t size = 0;
  const char* name = nullptr;
  char category = 0;  // b bool, i integral, f floating, c complex, q quantized
  bool is_signed = false;
};

// Indexed by PyTorch's number. A null name marks a number that no dtype has.
constexpr Info kInfos[] = {
    {1, "uint8", 'i', false},    {1, "int8", 'i', true},      {2, "int16", 'i', true},       {4, "int32", 'i', true},
    {8, "int64", 'i', true},     {2, "float16", 'f', true},   {4, "float32", 'f', true},     {8, "float64", 'f', true},
    {4, "complex32", 'c', true}, {8, "complex64", 'c', true}, {16, "complex128", 'c', true}, {1, "bool", 'b', false},
    {1, "qint8", 'q', true},     {1, "quint8", 'q', false},   {4, "qint32", 'q', true},      {2, "bfloat16", 'f', true},
    {1, "quint4x2", 'q', false},
};
static_assert(std::size(kInfos) == static_cast<size_t>(DType::kQUInt4x2) + 1);

const Info& info(DType dtype) {
  const auto number = static_cast<size_t>(dtype);  // a negative number becomes a huge one
  if (number >= std::size(kInfos) || kInfos[number].name == nullptr) {
    fail(ErrorCode::kInvalidArgument, "dtype ", static_cast<int>(dtype), " does not exist");
  }
  return kInfos[number];
}

}  // namespace

size_t size_of(DType dtype) { return info(dtype).size; }
const char* name_of(DType dtype) { return info(dtype).name; }
bool is_floating(DType dtype) { return info(dtype).category == 'f'; }
bool is_signed(DType dtype) { return info(dtype).is_signed; }
bool is_integral(DType dtype, bool include_bool) {
  const char category = info(dtype).category;
  return category == 'i' || (include_bool && category == 'b');
}

DType dtype_from_number(int64_t number) {
  check(number >= 0 && number <= 15, "dtype ", number, " does not exist");
  if (number >= 12 && number <= 14) {
    fail(ErrorCode::kUnimplemented, "quantized dtype ", number, " is not supported");
  }
  const auto dtype = static_cast<DType>(number);
  if (dtype == DType::kComplex32) {
    fail(ErrorCode::kUnimplemented, "dtype ", name_of(dtype), " is not supported");
  }
  return dtype;
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    // With a complex type, the result is wide if either part is: the complex type, or the other one if it is floating.
    const auto is_wide = [](DType dtype) { return dtype == DType::kComplex128 || dtype == DType::kFloat64; };
    if (a == DType::kComplex32 || b == DType::kComplex32)
      fail(ErrorCode::kUnimplemented, "dtype complex32 is not supported");
    return is_wide(a) || is_wide(b) ? DType::kComplex128 : DType::kComplex64;
  }
  const bool a_floating = is_floating(a), b_floating = is_floating(b);
  if (a_floating != b_floating) return a_floating ? a : b;
  if (a_floating) {
    // float16 and bfloat16 have no common 16-bit type.
    const size_t sa = size_of(a), sb = size_of(b);
    if (sa == sb) return DType::kFloat32;
    return sa > sb ? a : b;
  }
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  if (a == DType::kUInt8 || b == DType::kUInt8) {
    const DType other = a == DType::kUInt8 ? b : a;
    return other == DType::kInt8 ? DType::kInt16 : other;
  }
  return size_of(a) > size_of(b) ? a : b;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  if (from != DType::kBool && to == DType::kBool) return false;
  return true;
}

void fail_dtype(std::string_view op, DType dtype) {
  fail(ErrorCode::kUnimplemented, op, ": not implemented for dtype ", name_of(dtype));
}

}  // namespace tensord
