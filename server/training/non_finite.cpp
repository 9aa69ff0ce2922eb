#include "server/training/non_finite.h"

#include <algorithm>
#include <cmath>

#include "core/autograd/variable.h"
#include "core/ops/sparse.h"
#include "core/tensor/device_copy.h"

namespace tensord::server {
namespace {

bool is_finite(const Tensor& tensor) {
  const Tensor dense = host_copy(tensor).contiguous();
  bool all = true;
  dispatch_all(dense.dtype(), "is_finite", [&]<class T>() {
    const T* data = dense.data<T>();
    for (int64_t i = 0; i < dense.numel() && all; ++i) all = std::isfinite(static_cast<double>(data[i]));
  });
  return all;
}

double magnitude(const Tensor& tensor) {
  const Tensor dense = host_copy(tensor).contiguous();
  double out = 0;
  dispatch_all(dense.dtype(), "magnitude", [&]<class T>() {
    const T* data = dense.data<T>();
    for (int64_t i = 0; i < dense.numel(); ++i) out = std::max(out, std::abs(static_cast<double>(data[i])));
  });
  return out;
}

}  // namespace

std::pair<std::string, double> largest(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::pair<std::string, double> out;
  for (const auto& [name, tensor] : tensors) {
    const double value = magnitude(tensor);
    if (out.first.empty() || value > out.second) out = {name, value};
  }
  return out;
}

std::string first_non_finite(const std::vector<std::pair<std::string, Tensor>>& tensors, bool gradients) {
  for (const auto& [name, tensor] : tensors) {
    Tensor checked = gradients ? autograd::grad(tensor) : tensor;
    if (const ops::SparsePtr sparse = checked.defined() ? ops::as_sparse(checked) : nullptr) checked = sparse->values();
    if (checked.defined() && !is_finite(checked)) return name;
  }
  return {};
}

}  // namespace tensord::server
