#include "core/jit/archive/storage_types.h"

#include "core/base/error.h"

namespace tensord::jit {
namespace {

struct StorageClass {
  const char* name;
  DType dtype;
};
constexpr StorageClass kStorageClasses[] = {
    {"FloatStorage", DType::kFloat32},
    {"DoubleStorage", DType::kFloat64},
    {"HalfStorage", DType::kFloat16},
    {"LongStorage", DType::kInt64},
    {"IntStorage", DType::kInt32},
    {"ShortStorage", DType::kInt16},
    {"CharStorage", DType::kInt8},
    {"ByteStorage", DType::kUInt8},
    {"BoolStorage", DType::kBool},
    {"BFloat16Storage", DType::kBFloat16},
    {"ComplexFloatStorage", DType::kComplex64},
    {"ComplexDoubleStorage", DType::kComplex128},
};

struct RefusedClass {
  const char* name;
  const char* dtype;
};
constexpr RefusedClass kRefusedClasses[] = {
    {"QInt8Storage", "qint8"},       {"QUInt8Storage", "quint8"},     {"QInt32Storage", "qint32"},
    {"QUInt4x2Storage", "quint4x2"}, {"QUInt2x4Storage", "quint2x4"},
};

}  // namespace

std::optional<DType> dtype_of_storage_class(std::string_view name) {
  for (const StorageClass& entry : kStorageClasses) {
    if (name == entry.name) return entry.dtype;
  }
  for (const RefusedClass& entry : kRefusedClasses) {
    if (name == entry.name) fail(ErrorCode::kUnimplemented, "dtype ", entry.dtype, " is not supported");
  }
  return std::nullopt;
}

const char* storage_class_of(DType dtype) {
  for (const StorageClass& entry : kStorageClasses) {
    if (dtype == entry.dtype) return entry.name;
  }
  fail(ErrorCode::kUnimplemented, "dtype ", name_of(dtype), " is not supported");
}

}  // namespace tensord::jit
