#include "server/executor/model/unsigned_widening.h"

#include <cstring>
#include <limits>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Widens in place from the first element on; each is read before it is overwritten.
template <class From, class To>
void widen_elements(const WidenedTensor& wide, const std::string& what) {
  const auto count = static_cast<size_t>(wide.tensor.numel());
  auto* const to = static_cast<char*>(wide.tensor.raw_data());
  for (size_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, wide.wire_bytes + i * sizeof(From), sizeof(From));
    check(element <= static_cast<uint64_t>(std::numeric_limits<To>::max()), what, " has an element above ",
          std::numeric_limits<To>::max(), ", which no tensor can hold");
    const auto number = static_cast<To>(element);
    std::memcpy(to + i * sizeof(To), &number, sizeof(To));
  }
}

}  // namespace

WidenedTensor make_widened_tensor(DataType datatype, const Dims& shape) {
  WidenedTensor wide{.tensor = Tensor::empty(shape, *to_dtype(tensor_datatype(datatype)))};
  const size_t count = static_cast<size_t>(wide.tensor.numel());
  // The wire data goes to the end of the tensor's memory.
  wide.wire_bytes = static_cast<char*>(wide.tensor.raw_data()) + (wide.tensor.size_bytes() - count * size_of(datatype));
  return wide;
}

void widen(const WidenedTensor& wide, DataType datatype, const std::string& what) {
  if (datatype == DataType::kUint16) widen_elements<uint16_t, int32_t>(wide, what);
  if (datatype == DataType::kUint32) widen_elements<uint32_t, int64_t>(wide, what);
  if (datatype == DataType::kUint64) widen_elements<uint64_t, int64_t>(wide, what);
}

void append_narrowed(const Tensor& tensor, DataType datatype, std::string& out) {
  const auto* from = static_cast<const char*>(tensor.raw_data());
  const size_t wide_bytes = size_of(tensor_datatype(datatype)), wire_bytes = size_of(datatype);
  const auto count = static_cast<size_t>(tensor.numel());
  out.reserve(out.size() + count * wire_bytes);
  for (size_t i = 0; i < count; ++i) out.append(from + i * wide_bytes, wire_bytes);  // little-endian: the low bytes
}

}  // namespace tensord::server
