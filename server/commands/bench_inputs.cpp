#include "server/commands/bench_inputs.h"

#include <charconv>
#include <string_view>

#include "core/base/error.h"

namespace tensord::server {

namespace {

DType dtype_named(std::string_view name, const std::string& text) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64, DType::kInt32,
                      DType::kInt16, DType::kInt8, DType::kUInt8, DType::kBool}) {
    if (name == name_of(dtype)) return dtype;
  }
  fail(ErrorCode::kInvalidArgument, "--input ", text, ": no dtype '", name, "'");
}

Dims parse_sizes(std::string_view sizes, const std::string& text) {
  Dims out;
  while (!sizes.empty()) {
    const size_t end = std::min(sizes.find_first_of(",x"), sizes.size());
    int64_t size = 0;
    const auto [stop, code] = std::from_chars(sizes.data(), sizes.data() + end, size);
    check(code == std::errc() && stop == sizes.data() + end && size >= 0, "--input ", text, ": bad shape");
    out.push_back(size);
    sizes.remove_prefix(std::min(end + 1, sizes.size()));
  }
  return out;
}

template <class T>
void fill(const Tensor& tensor) {
  T* data = tensor.data<T>();
  uint32_t state = 12345;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float unit = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    if constexpr (std::is_integral_v<T>) {
      data[i] = static_cast<T>(state >> 28);
    } else {
      data[i] = static_cast<T>(2 * unit - 1);
    }
  }
}

}  // namespace

Tensor make_input(const std::string& text, int64_t batch) {
  const size_t colon = text.find(':');
  const DType dtype =
      colon == std::string::npos ? DType::kFloat32 : dtype_named(std::string_view(text).substr(colon + 1), text);
  Dims sizes = parse_sizes(std::string_view(text).substr(0, colon), text);
  if (batch > 0 && !sizes.empty()) sizes[0] = batch;
  const Tensor out = Tensor::empty(sizes, dtype);
  dispatch_all(dtype, "--input", [&]<class T>() { fill<T>(out); });
  return out;
}

}  // namespace tensord::server
