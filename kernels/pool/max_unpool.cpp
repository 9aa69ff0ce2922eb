// max_unpool: puts the values of a max pooling back where they came from.
#include "kernels/expr/compose.h"

#include "ops/factory.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

// The planes are the last `spatial` dimensions; `size` has their sizes in the result.
Tensor unpool(const Tensor& x, const Tensor& indices, const ops::IntList& size, int64_t spatial) {
  check(indices.dtype() == DType::kInt64,
        "elements in indices should be type int64 but got: ", name_of(indices.dtype()));
  check(static_cast<int64_t>(size.size()) == spatial, "There should be exactly ", spatial,
        " elements in output_size, but got ", size.size(), " elements.");
  check(x.ndim() == spatial + 1 || x.ndim() == spatial + 2, "Input to max_unpooling", spatial, "d should be a ",
        spatial + 1, "d or ", spatial + 2, "d Tensor, but got a tensor with ", x.ndim(), " dimensions");
  check(x.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (", x.sizes(),
        ") but got indices tensor with shape: ", indices.sizes());
  Dims planes, out;
  int64_t pixels = 1;
  for (int64_t dim = 0; dim < x.ndim() - spatial; ++dim) {
    planes.push_back(x.size(dim));
    out.push_back(x.size(dim));
  }
  for (const int64_t n : size) {
    check(n > 0 && !__builtin_mul_overflow(pixels, n, &pixels), "max_unpool: output_size must be positive, but got ",
          to_string(size));
    out.push_back(n);
  }
  const auto flat = [&](const Tensor& t) { return ops::flatten(t, -spatial, int64_t{-1}); };
  const Tensor places = flat(indices);
  if (!indices.is_meta() && indices.numel() > 0) {
    const int64_t low = ops::min(places).item_int(), high = ops::max(places).item_int();
    check(low >= 0 && high < pixels, "Found an invalid max index: ", low < 0 ? low : high,
          " (output volumes are of size ", to_string(size), ")");
  }
  planes.push_back(pixels);
  const Tensor zeros = ops::zeros(planes, {.dtype = x.dtype(), .device = x.device()});
  return ops::reshape(ops::scatter(zeros, int64_t{-1}, places, flat(x)), out);
}
OP("aten::max_unpool2d")
    .impl([](const Tensor& x, const Tensor& indices, const ops::IntList& size) { return unpool(x, indices, size, 2); })
    .composite();
OP("aten::max_unpool3d")
    .impl([](const Tensor& x, const Tensor& indices, const ops::IntList& size, const ops::IntList& stride,
             const ops::IntList&) {
      for (const int64_t step : stride)
        check(step > 0, "strides should be greater than zero, but got ", to_string(stride));
      return unpool(x, indices, size, 3);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
