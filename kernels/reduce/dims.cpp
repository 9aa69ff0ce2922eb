#include "kernels/reduce/dims.h"

namespace tensord::kernels {

ReducedDims::ReducedDims(const Tensor& in, const std::optional<Dims>& dims) {
  const int64_t ndim = in.ndim();
  if (!dims || dims->empty()) {
    for (int64_t d = 0; d < ndim; ++d) is_reduced[d] = true;
    count = in.numel();
    return;
  }
  for (int64_t dim : *dims) {
    const int64_t d = wrap_dim(dim, ndim);
    check(!is_reduced[d] || ndim == 0, "dim ", d, " appears multiple times in the list of dims");
    is_reduced[d] = true;
    if (ndim > 0) count *= in.sizes()[d];
  }
}

Dims ReducedDims::sizes(const Tensor& in, bool keepdim) const {
  Dims out;
  for (int64_t d = 0; d < in.ndim(); ++d) {
    if (!is_reduced[d])
      out.push_back(in.sizes()[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

Tensor ReducedDims::kept(const Tensor& in, const Tensor& out, bool keepdim) const {
  if (keepdim) return out;
  Dims sizes(static_cast<size_t>(in.ndim()), 1), strides(static_cast<size_t>(in.ndim()), 0);
  size_t next = 0;
  for (int64_t d = 0; d < in.ndim(); ++d) {
    if (is_reduced[d]) continue;
    sizes[d] = out.sizes()[next];
    strides[d] = out.strides()[next++];
  }
  return out.as_view(sizes, strides, out.offset());
}

}  // namespace tensord::kernels
