#include "core/jit/importers/pt2/enums.h"

#include <span>

#include "core/base/error.h"

namespace tensord::jit::pt2 {
namespace {

struct Number {
  int64_t schema;
  int64_t torch;  // -1: not supported
  const char* name;
};

constexpr Number kDTypes[] = {
    {1, static_cast<int64_t>(DType::kUInt8), "uint8"},
    {2, static_cast<int64_t>(DType::kInt8), "int8"},
    {3, static_cast<int64_t>(DType::kInt16), "int16"},
    {4, static_cast<int64_t>(DType::kInt32), "int32"},
    {5, static_cast<int64_t>(DType::kInt64), "int64"},
    {6, static_cast<int64_t>(DType::kFloat16), "float16"},
    {7, static_cast<int64_t>(DType::kFloat32), "float32"},
    {8, static_cast<int64_t>(DType::kFloat64), "float64"},
    {9, static_cast<int64_t>(DType::kComplex32), "complex32"},
    {10, static_cast<int64_t>(DType::kComplex64), "complex64"},
    {11, static_cast<int64_t>(DType::kComplex128), "complex128"},
    {12, static_cast<int64_t>(DType::kBool), "bool"},
    {13, static_cast<int64_t>(DType::kBFloat16), "bfloat16"},
    {28, -1, "uint16"},
    {29, -1, "float8_e4m3fn"},
    {30, -1, "float8_e5m2"},
    {31, -1, "float8_e4m3fnuz"},
    {32, -1, "float8_e5m2fnuz"},
    {33, -1, "float8_e8m0fnu"},
    {34, -1, "uint32"},
    {35, -1, "uint64"},
};
constexpr Number kMemoryFormats[] = {
    {1, 0, "contiguous_format"}, {2, 2, "channels_last"}, {3, 3, "channels_last_3d"}, {4, 1, "preserve_format"}};
constexpr Number kLayouts[] = {{1, -1, "sparse_coo"},         {2, -1, "sparse_csr"}, {3, -1, "sparse_csc"},
                               {4, -1, "sparse_bsr"},         {5, -1, "sparse_bsc"}, {6, -1, "_mkldnn"},
                               {kStridedLayout, 0, "strided"}};

int64_t look_up(std::span<const Number> numbers, int64_t number, const char* what, const std::string& where) {
  for (const Number& known : numbers) {
    if (known.schema != number) continue;
    if (known.torch < 0) fail(ErrorCode::kUnimplemented, where, ": ", what, " ", known.name, " is not supported");
    return known.torch;
  }
  fail(ErrorCode::kDataLoss, where, ": ", number, " is not a ", what);
}

int64_t number_in_schema(std::span<const Number> numbers, int64_t torch, const char* what) {
  for (const Number& known : numbers) {
    if (known.torch == torch && torch >= 0) return known.schema;
  }
  fail(ErrorCode::kUnimplemented, "exported programs have no ", what, " ", torch);
}

}  // namespace

int64_t schema_number(DType dtype) { return number_in_schema(kDTypes, static_cast<int64_t>(dtype), "dtype"); }
int64_t memory_format_number(int64_t format) { return number_in_schema(kMemoryFormats, format, "memory format"); }

DType to_dtype(int64_t number, const std::string& where) {
  const int64_t torch = look_up(kDTypes, number, "dtype", where);
  try {
    return dtype_from_number(torch);
  } catch (const Error& error) {
    throw Error(error.code(), concat(where, ": ", error.what()));
  }
}

int64_t to_memory_format(int64_t number, const std::string& where) {
  return look_up(kMemoryFormats, number, "memory format", where);
}

int64_t to_layout(int64_t number, const std::string& where) { return look_up(kLayouts, number, "layout", where); }

}  // namespace tensord::jit::pt2
