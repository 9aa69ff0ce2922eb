// Joins tensors: by blocks of bytes where an input has the result's memory order, else element by element.
#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/strided_copy.h"
#include "kernels/view/cat.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::TensorList;

// An input that is dense in the order of dimensions of `out` consists of blocks of bytes.
bool has_order_of(const Tensor& x, const Tensor& out, bool channels_last) {
  return x.dtype() == out.dtype() && (channels_last ? x.is_channels_last() : x.is_contiguous());
}

// The elements of one block of a source: those of all dimensions inside of `dim`, times its size.
int64_t block_elements(const Dims& sizes, int64_t dim, bool channels_last) {
  int64_t block = sizes[dim];
  const auto ndim = static_cast<int64_t>(sizes.size());
  if (!channels_last) {
    for (int64_t d = dim + 1; d < ndim; ++d) block *= sizes[d];
    return block;
  }
  if (dim == 1) return block;
  for (int64_t d = dim == 0 ? 2 : dim + 1; d < ndim; ++d) block *= sizes[d];
  return block * sizes[1];
}

void copy_blocks(const Tensor& x, Tensor& out, int64_t block, int64_t out_block, int64_t start) {
  if (x.numel() == 0) return;
  const auto width = static_cast<int64_t>(size_of(out.dtype()));
  const auto* from = static_cast<const char*>(x.raw_data());
  auto* to = static_cast<char*>(out.raw_data()) + start * width;
  const int64_t count = x.numel() / block, bytes = block * width, step = out_block * width;
  parallel_for(count, std::max<int64_t>(1, 65536 / bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * step, from + i * bytes, static_cast<size_t>(bytes));
  });
}

void cat_on_device(const TensorList& tensors, int64_t dim, const Tensor& out) {
  int64_t position = 0;
  for (const Tensor& x : tensors) {
    if (is_skipped(x)) continue;
    copy_elements(narrow(out, dim, position, x.sizes()[dim]), x);
    position += x.sizes()[dim];
  }
}

}  // namespace

void cat_kernel(const KernelContext&, const TensorList& tensors, int64_t dim, Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, out.ndim());
  if (!out.device().is_host()) return cat_on_device(tensors, dim, out);
  const bool row_major = out.is_contiguous();
  const bool channels_last = !row_major && out.is_channels_last();
  const int64_t out_block = row_major || channels_last ? block_elements(out.sizes(), dim, channels_last) : 0;
  int64_t position = 0, start = 0;
  for (const Tensor& x : tensors) {
    if (is_skipped(x)) continue;
    const int64_t length = x.sizes()[dim];
    if (out_block > 0 && has_order_of(x, out, channels_last)) {
      const int64_t block = block_elements(x.sizes(), dim, channels_last);
      copy_blocks(x, out, block, out_block, start);
      start += block;
    } else {
      strided_copy(narrow(out, dim, position, length), x);
      if (out_block > 0) start += block_elements(x.sizes(), dim, channels_last);
    }
    position += length;
  }
}

}  // namespace tensord::kernels
