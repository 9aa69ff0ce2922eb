#include <cstdio>

#include "kernels/script/value_text.h"

namespace tensord::kernels {
namespace {

std::string short_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.4f", value);
  return buffer;
}

}  // namespace

std::string element_text(const Tensor& x, int64_t index) {
  const Tensor flat = x.is_contiguous() ? x : x.contiguous();
  return dispatch_all(x.dtype(), "str", [&]<class T>() -> std::string {
    const T value = flat.data<T>()[index];
    if constexpr (std::is_same_v<T, bool>) return value ? "1" : "0";
    if constexpr (std::is_integral_v<T>) return std::to_string(static_cast<int64_t>(value));
    return short_text(static_cast<double>(value));
  });
}

}  // namespace tensord::kernels
