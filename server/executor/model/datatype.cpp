#include "server/executor/model/datatype.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace tensord::server {
namespace {

struct Row {
  std::string_view name;
  size_t size_bytes;
  std::optional<DType> dtype;
};

// In the order of the enum.
constexpr Row kRows[] = {
    {"BOOL", 1, DType::kBool},    {"UINT8", 1, DType::kUInt8},   {"UINT16", 2, std::nullopt},
    {"UINT32", 4, std::nullopt},  {"UINT64", 8, std::nullopt},   {"INT8", 1, DType::kInt8},
    {"INT16", 2, DType::kInt16},  {"INT32", 4, DType::kInt32},   {"INT64", 8, DType::kInt64},
    {"FP16", 2, DType::kFloat16}, {"BF16", 2, DType::kBFloat16}, {"FP32", 4, DType::kFloat32},
    {"FP64", 8, DType::kFloat64}, {"BYTES", 0, std::nullopt},
};
static_assert(std::size(kRows) == static_cast<size_t>(DataType::kBytes) + 1);

// A name of up to 8 bytes packed into an integer, so that names compare in one step. Trailing zero bytes are not
// distinguished.
constexpr uint64_t packed(std::string_view name) {
  uint64_t number = 0;
  for (size_t i = 0; i < name.size(); ++i) number |= uint64_t{static_cast<uint8_t>(name[i])} << (8 * i);
  return number;
}

constexpr auto kPackedNames = [] {
  std::array<uint64_t, std::size(kRows)> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = packed(kRows[i].name);
  return numbers;
}();

const Row& row(DataType datatype) { return kRows[static_cast<size_t>(datatype)]; }

}  // namespace

const char* name_of(DataType datatype) { return row(datatype).name.data(); }
size_t size_of(DataType datatype) { return row(datatype).size_bytes; }
std::optional<DType> to_dtype(DataType datatype) { return row(datatype).dtype; }

std::optional<DataType> parse_datatype(std::string_view name) {
  if (name.size() > sizeof(uint64_t)) return std::nullopt;
  const uint64_t wanted = packed(name);
  for (size_t i = 0; i < std::size(kPackedNames); ++i) {
    if (wanted == kPackedNames[i] && name.size() == kRows[i].name.size()) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

DataType from_dtype(DType dtype) {
  const Row* found = std::ranges::find(kRows, dtype, &Row::dtype);
  if (found == std::end(kRows)) {
    fail(ErrorCode::kUnimplemented, "the protocol has no datatype for outputs of ", name_of(dtype),
         "; a model can answer with torch.view_as_real of them");
  }
  return static_cast<DataType>(found - kRows);
}

}  // namespace tensord::server
