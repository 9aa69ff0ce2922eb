#include "core/tensor/dtype_names.h"

namespace tensord {
namespace {

struct Name {
  DType dtype;
  std::string_view other;  // empty: name_of() is its only one
};
constexpr Name kNames[] = {
    {DType::kUInt8, ""},
    {DType::kInt8, ""},
    {DType::kInt16, "short"},
    {DType::kInt32, "int"},
    {DType::kInt64, "long"},
    {DType::kFloat16, "half"},
    {DType::kFloat32, "float"},
    {DType::kFloat64, "double"},
    {DType::kComplex64, "cfloat"},
    {DType::kComplex128, "cdouble"},
    {DType::kBool, ""},
    {DType::kBFloat16, ""},
};

}  // namespace

std::optional<DType> dtype_of_torch_name(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const Name& entry : kNames) {
    if (name == name_of(entry.dtype) || name == entry.other) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace tensord
