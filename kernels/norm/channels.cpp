#include "kernels/norm/channels.h"

#include <algorithm>

namespace tensord::kernels {

ChannelLayout::ChannelLayout(const Tensor& x) {
  batch = x.sizes()[0];
  channels = x.sizes()[1];
  inner = x.numel() / std::max<int64_t>(1, batch * channels);
  by_rows = inner == 1 || !x.is_contiguous();
}

Tensor dense_channels(const Tensor& x) {
  const Tensor wide = x.to(x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
  return wide.ndim() >= 4 && wide.is_channels_last() ? wide : wide.contiguous();
}

Tensor dense_channels_like(const Tensor& x, const Tensor& like) {
  if (x.dtype() == like.dtype() && x.strides() == like.strides()) return x;
  const Tensor wide = Tensor::empty_strided(like.sizes(), like.strides(), like.dtype());
  wide.copy_from(x);
  return wide;
}

}  // namespace tensord::kernels
