#include <algorithm>

#include "core/ops/op.h"
#include "kernels/view.h"

// One tensor cut into several views.
namespace tensord::kernels {

std::vector<Tensor> split_with_sizes(const Tensor& x, const IntList& sizes, int64_t dim) {
  check(x.ndim() != 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t size : sizes) {
    check(size >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
          to_string(sizes));
    check(size <= length - start, "split_with_sizes expects split_sizes to sum exactly to ", length,
          " (input tensor's size at dimension ", dim, "), but got split_sizes=", to_string(sizes));
    out.push_back(narrow(x, dim, start, size));
    start += size;
  }
  check(start == length, "split_with_sizes expects split_sizes to sum exactly to ", length,
        " (input tensor's size at dimension ", dim, "), but got split_sizes=", to_string(sizes));
  return out;
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim) {
  check(x.ndim() != 0, "split expects at least a 1-dimensional tensor");
  check(size >= 0, "split expects split_size be non-negative, but got split_size=", size);
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  check(size > 0 || length == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", length);
  std::vector<Tensor> out;
  int64_t start = 0;
  do {
    const int64_t part = std::min(size, length - start);
    out.push_back(narrow(x, dim, start, part));
    start += part;
  } while (start < length);
  return out;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  check(x.ndim() > 0, "chunk expects at least a 1-dimensional tensor");
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  if (length == 0) {
    check(chunks < (int64_t{1} << 24), "chunk: too many chunks: ", chunks);
    return split_with_sizes(x, Dims(static_cast<size_t>(chunks), 0), dim);
  }
  return split(x, length / chunks + (length % chunks != 0), dim);
}

namespace {

using TensorList = std::vector<Tensor>;

// The first length % sections parts are one longer.
TensorList tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  check(x.ndim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.ndim(),
        " dims");
  check(sections > 0, "number of sections must be larger than 0, got ", sections);
  check(sections < (int64_t{1} << 24), "tensor_split: too many sections: ", sections);
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  TensorList out;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t part = length / sections + (i < length % sections);
    out.push_back(narrow(x, dim, start, part));
    start += part;
  }
  return out;
}

TensorList tensor_split_at(const Tensor& x, const IntList& indices, int64_t dim) {
  check(x.ndim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.ndim(),
        " dims");
  TensorList out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(slice(x, dim, start, end, 1));
    start = end;
  }
  out.push_back(slice(x, dim, start, std::nullopt, 1));
  return out;
}

TensorList unbind(const Tensor& x, int64_t dim) {
  check(x.ndim() > 0, "unbind: a 0-dim tensor has no dimension to unbind");
  dim = wrap_dim(dim, x.ndim());
  TensorList out;
  for (int64_t i = 0; i < x.sizes()[dim]; ++i) out.push_back(select(x, dim, i));
  return out;
}

TensorList copies(TensorList views) {
  for (Tensor& x : views) x = x.clone();
  return views;
}

TensorList broadcast_tensors(const TensorList& tensors) {
  Dims sizes;
  for (const Tensor& x : tensors) sizes = broadcast_sizes(sizes, x.sizes());
  TensorList out;
  for (const Tensor& x : tensors) out.push_back(expand(x, sizes));
  return out;
}

TensorList meshgrid(const TensorList& tensors, bool swaps) {
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  swaps = swaps && tensors.size() >= 2;
  TensorList inputs = tensors;
  if (swaps) std::swap(inputs[0], inputs[1]);
  Dims sizes;
  for (const Tensor& x : inputs) {
    check(x.ndim() <= 1, "Expected 0D or 1D tensor in the tensor list but got a tensor with ", x.ndim(), " dims");
    check(x.dtype() == inputs[0].dtype(), "meshgrid expects all tensors to have the same dtype");
    sizes.push_back(x.numel());
  }
  TensorList out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Dims shape(inputs.size(), 1);
    shape[i] = sizes[i];
    out.push_back(expand(reshape(inputs[i], shape), sizes));
  }
  if (swaps) std::swap(out[0], out[1]);
  return out;
}

OP("aten::split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]").direct(split);
OP("aten::split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]").direct(split_with_sizes);
OP("aten::split(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]").direct(split_with_sizes);
OP("aten::split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]").direct(split_with_sizes);
OP("aten::unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]")
    .direct([](const Tensor& x, int64_t size, int64_t dim) { return copies(split(x, size, dim)); });
OP("aten::unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]")
    .direct([](const Tensor& x, const IntList& sizes, int64_t dim) { return copies(split_with_sizes(x, sizes, dim)); });
OP("aten::chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]").direct(chunk);
OP("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
    .direct([](const Tensor& x, int64_t chunks, int64_t dim) { return copies(chunk(x, chunks, dim)); });
OP("aten::tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]").direct(tensor_split);
OP("aten::tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]").direct(tensor_split_at);
OP("aten::unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]").direct(unbind);
OP("aten::broadcast_tensors(Tensor(a)[] tensors) -> Tensor(a)[]").direct(broadcast_tensors);
OP("aten::meshgrid(Tensor(a)[] tensors) -> Tensor(a)[]").direct([](const TensorList& tensors) {
  return meshgrid(tensors, false);
});
OP("aten::meshgrid.indexing(Tensor(a)[] tensors, *, str indexing) -> Tensor(a)[]")
    .direct([](const TensorList& tensors, const std::string& indexing) {
      check(indexing == "ij" || indexing == "xy",
            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
      return meshgrid(tensors, indexing == "xy");
    });

}  // namespace
}  // namespace tensord::kernels
