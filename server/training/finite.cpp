#include "server/training/finite.h"

#include <cmath>

#include "core/autograd/variable.h"

namespace tensord::server {
namespace {

bool is_finite(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  bool all = true;
  dispatch_all(dense.dtype(), "is_finite", [&]<class T>() {
    const T* data = dense.data<T>();
    for (int64_t i = 0; i < dense.numel() && all; ++i) all = std::isfinite(static_cast<double>(data[i]));
  });
  return all;
}

}  // namespace

std::string first_not_finite(const std::vector<std::pair<std::string, Tensor>>& tensors, bool gradients) {
  for (const auto& [name, tensor] : tensors) {
    const Tensor checked = gradients ? autograd::grad(tensor) : tensor;
    if (checked.defined() && !is_finite(checked)) return name;
  }
  return {};
}

}  // namespace tensord::server
