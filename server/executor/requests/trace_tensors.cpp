#include "server/executor/requests/trace_tensors.h"

#include <algorithm>
#include <sstream>

#include "core/tensor/device_copy.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxElements = 4096;
constexpr size_t kMaxTextBytes = 64 << 10;

// The first elements as a 1-D tensor.
Tensor first_of(const InferTensor& tensor) {
  if (!tensor.scattered) {
    const Tensor whole = tensor.tensor.contiguous();
    return host_copy(whole.as_view({std::min(whole.numel(), kMaxElements)}, {1}, whole.offset()));
  }
  const Tensor out = Tensor::empty({{std::min(checked_numel(tensor.shape), kMaxElements)}}, *to_dtype(tensor.datatype));
  auto* to = static_cast<uint8_t*>(out.raw_data());
  size_t left = out.size_bytes();
  for (const auto& piece : tensor.scattered->pieces) {
    const size_t size = std::min(left, piece.size());
    to = std::copy_n(piece.data(), size, to);
    left -= size;
  }
  return out;
}

std::string text_of(const Tensor& first) {
  const int64_t count = first.numel();
  const bool is_real = is_floating(first.dtype());
  const Tensor values = first.to(is_real ? DType::kFloat64 : DType::kInt64);
  std::ostringstream out;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) out << ',';
    if (is_real) {
      out << values.data<double>()[i];
    } else {
      out << values.data<int64_t>()[i];
    }
  }
  return out.str();
}

std::string text_of(const std::vector<std::string>& strings) {
  std::string out;
  for (size_t i = 0; i < strings.size() && out.size() < kMaxTextBytes; ++i) {
    if (i > 0) out += ',';
    out += strings[i].substr(0, kMaxTextBytes);
  }
  return out;
}

}  // namespace

void trace_tensors(RequestTrace& trace, TensorActivity activity, std::span<const InferTensor> tensors) {
  if (!trace.wants_tensors()) return;
  for (const InferTensor& tensor : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) {
      if (!shape.empty()) shape += ',';
      shape += std::to_string(size);
    }
    std::string data = tensor.datatype == DataType::kBytes ? text_of(tensor.strings) : text_of(first_of(tensor));
    trace.add_tensor(activity, tensor.name, name_of(tensor.datatype), std::move(shape), std::move(data));
  }
}

}  // namespace tensord::server
