// gather and scatter on the CPU.
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/base/cancellation.h"
#include "core/ops/op.h"
#include "core/tensor/loops.h"
#include "core/tensor/strided_copy.h"
#include "kernels/index/index.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;

// A walk over the positions of `index`: the index itself, the place in `x` without the indexed dimension (the index
// supplies that), and the place in `other`.
LoopNest<3> walk_of(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& other) {
  Dims in_x(index.sizes().size(), 0);
  for (int64_t d = 0; d < index.ndim() && d < x.ndim(); ++d) in_x[d] = d == dim ? 0 : x.strides()[d];
  const Dims in_other = other.ndim() == index.ndim() ? other.strides() : Dims(index.sizes().size(), 0);
  return LoopNest<3>(index.sizes(), {index.strides(), in_x, in_other});
}

// Calls fn(offset in x that the index names, offset of the same position in `other`). With `is_parallel` no two calls
// may write to the same place.
template <class Fn>
void for_each_indexed(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& other, bool is_parallel,
                      Fn&& fn) {
  if (index.numel() == 0) return;
  const auto* indices = index.data<int64_t>();
  const int64_t size = x.ndim() == 0 ? 1 : x.sizes()[dim], stride = x.ndim() == 0 ? 0 : x.strides()[dim];
  const auto row = [&](const std::array<int64_t, 3>& offset, int64_t count, const std::array<int64_t, 3>& step) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t position = indices[offset[0] + i * step[0]];
      if (position < 0 || position >= size) [[unlikely]] {
        fail(ErrorCode::kOutOfRange, "index ", position, " is out of bounds for dimension ", dim, " with size ", size);
      }
      fn(offset[1] + i * step[1] + position * stride, offset[2] + i * step[2]);
    }
  };
  const LoopNest<3> walk = walk_of(x, dim, index, other);
  if (is_parallel) return walk.parallel_rows(16384, row);
  in_pieces(walk.numel(), kPieceElements, [&](int64_t begin, int64_t end) { walk.rows(begin, end, row); });
}

void gather_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, bool, Tensor& out) {
  dim = wrap_dim(dim, x.ndim());
  dispatch_width(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    for_each_indexed(x, dim, index, out, true, [&](int64_t source, int64_t target) { to[target] = from[source]; });
  });
}

// `out` starts as a copy of self, from which the kernel reads, unless it is self already. All indices are checked
// first.
void start_scatter_from(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  if (overlap(self, out) != Overlap::kFull) return strided_copy(out, self);
  Dims sizes = index.sizes();
  for (int64_t d = 0; d < index.ndim(); ++d) {
    if (index.strides()[d] == 0 && sizes[d] > 1) sizes[d] = 1;  // the same indices again
  }
  const Tensor seen = index.as_view(sizes, index.strides(), index.offset());
  for_each_indexed(out, wrap_dim(dim, self.ndim()), seen, seen, false, [](int64_t, int64_t) {});
}

void scatter_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                    Tensor& out) {
  start_scatter_from(x, dim, index, out);
  dispatch_width(x.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    const T* from = static_cast<const T*>(source.raw_data());
    for_each_indexed(out, wrap_dim(dim, x.ndim()), index, source, false,
                     [&](int64_t t, int64_t s) { to[t] = from[s]; });
  });
}

void scatter_value_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value,
                          Tensor& out) {
  start_scatter_from(x, dim, index, out);
  dispatch_all(x.dtype(), "scatter", [&]<class T>() {
    T* to = out.data<T>();
    const T fill = value.to<T>();
    for_each_indexed(out, wrap_dim(dim, x.ndim()), index, index, false, [&](int64_t t, int64_t) { to[t] = fill; });
  });
}

void scatter_add_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                        Tensor& out) {
  start_scatter_from(x, dim, index, out);
  dispatch_all(x.dtype(), "scatter_add", [&]<class T>() {
    T* to = out.data<T>();
    const T* from = static_cast<const T*>(source.raw_data());
    for_each_indexed(out, wrap_dim(dim, x.ndim()), index, source, false,
                     [&](int64_t t, int64_t s) { to[t] = static_cast<T>(to[t] + from[s]); });
  });
}

template <class T>
bool is_nan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}

// How often each element was written, by its offset. With few writes to a large tensor only those that were written are
// kept.
class Writes {
 public:
  Writes(size_t extent, int64_t writes, int64_t first) : first_(first) {
    constexpr size_t kMuchLarger = 16;
    if (extent / kMuchLarger <= static_cast<size_t>(writes)) all_.resize(extent, first);
  }
  int64_t& operator[](int64_t offset) {
    return all_.empty() ? some_.try_emplace(offset, first_).first->second : all_[static_cast<size_t>(offset)];
  }

 private:
  int64_t first_;
  std::vector<int64_t> all_;
  std::unordered_map<int64_t, int64_t> some_;
};

// The elements from a tensor's first to the end of its last.
size_t extent_of(const Tensor& x) {
  if (x.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t d = 0; d < x.ndim(); ++d) last += (x.sizes()[d] - 1) * x.strides()[d];
  return static_cast<size_t>(last + 1);
}

template <class T>
void reduce_into(const std::string& reduce, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 bool include_self, Tensor& out) {
  T* to = out.data<T>();
  const T* from = static_cast<const T*>(source.raw_data());
  // Without include_self the first write replaces.
  const bool counts = !include_self || reduce == "mean";
  Writes writes(counts ? extent_of(out) : 0, index.numel(), include_self ? 1 : 0);
  const int64_t wrapped = wrap_dim(dim, x.ndim());
  for_each_indexed(out, wrapped, index, source, false, [&](int64_t t, int64_t s) {
    if (counts && writes[t]++ == 0)
      to[t] = from[s];
    else if (reduce == "sum" || reduce == "mean")
      to[t] = static_cast<T>(to[t] + from[s]);
    else if (reduce == "prod")
      to[t] = static_cast<T>(to[t] * from[s]);
    else if (reduce == "amax")
      to[t] = from[s] > to[t] || is_nan(from[s]) ? from[s] : to[t];
    else
      to[t] = from[s] < to[t] || is_nan(from[s]) ? from[s] : to[t];
  });
  if (reduce != "mean") return;
  for_each_indexed(out, wrapped, index, source, false, [&](int64_t t, int64_t) {
    const int64_t count = std::exchange(writes[t], 1);  // a place that occurs twice has been divided already
    if (count < 2) return;
    if constexpr (std::is_integral_v<T>)
      to[t] = static_cast<T>(std::floor(static_cast<double>(to[t]) / static_cast<double>(count)));
    else
      to[t] = static_cast<T>(static_cast<double>(to[t]) / static_cast<double>(count));
  });
}

void scatter_reduce_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index,
                           const Tensor& source, const std::string& reduce, bool include_self, Tensor& out) {
  start_scatter_from(x, dim, index, out);
  dispatch_all(x.dtype(), "scatter_reduce",
               [&]<class T>() { reduce_into<T>(reduce, x, dim, index, source, include_self, out); });
}

void scatter_old_reduce_kernel(const KernelContext& context, const Tensor& x, int64_t dim, const Tensor& index,
                               const Tensor& source, const std::string& reduce, Tensor& out) {
  scatter_reduce_kernel(context, x, dim, index, source, reduce == "add" ? "sum" : "prod", true, out);
}

IMPL("aten::gather", kCPU, gather_kernel);
IMPL("aten::scatter.src", kCPU, scatter_kernel);
IMPL("aten::scatter.value", kCPU, scatter_value_kernel);
IMPL("aten::scatter.reduce", kCPU, scatter_old_reduce_kernel);
IMPL("aten::scatter_add", kCPU, scatter_add_kernel);
IMPL("aten::scatter_reduce.two", kCPU, scatter_reduce_kernel);

}  // namespace
}  // namespace tensord::kernels
