// fft_fftshift and fft_ifftshift: the zero frequency to the middle, and back.
#include "kernels/expr/compose.h"

#include "ops/view.h"

namespace tensord::kernels {
namespace {

// Rolls each dimension (all where none are given) by half of its size, rounded down or, backwards, up.
Tensor shifted(const Tensor& x, const std::optional<Dims>& given, bool is_back) {
  Dims dims = given.value_or(Dims());
  if (!given) {
    for (int64_t dim = 0; dim < x.ndim(); ++dim) dims.push_back(dim);
  }
  Dims shifts;
  for (const int64_t dim : dims) shifts.push_back((x.size(dim) + (is_back ? 1 : 0)) / 2);
  return dims.empty() ? ops::clone(x) : ops::roll(x, shifts, dims);
}
OP("aten::fft_fftshift")
    .impl([](const Tensor& x, const std::optional<Dims>& dims) { return shifted(x, dims, false); })
    .composite();
OP("aten::fft_ifftshift")
    .impl([](const Tensor& x, const std::optional<Dims>& dims) { return shifted(x, dims, true); })
    .composite();

}  // namespace
}  // namespace tensord::kernels
