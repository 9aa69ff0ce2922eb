// Sorting and selecting along a dimension, on the CPU.
#include <algorithm>
#include <numeric>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/index/index.h"
#include "kernels/index/watched_order.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>)
    return a < b;
  else
    return (a != a) ? false : (b != b) ? true : a < b;  // NOLINT(misc-redundant-expression)
}

// One line of a tensor along the sorted dimension, copied, with its order after sorting.
template <class T>
struct Line {
  std::vector<T> values;
  std::vector<int64_t> order;

  void load(const T* from, int64_t count, int64_t stride) {
    values.reserve(static_cast<size_t>(count));
    order.reserve(static_cast<size_t>(count));
    // Reuses its memory, since the first access to new memory takes most of the time.
    in_pieces(count, kPieceElements, [&](int64_t begin, int64_t end) {
      values.resize(static_cast<size_t>(end));
      order.resize(static_cast<size_t>(end));
      for (int64_t i = begin; i < end; ++i) values[i] = from[i * stride];
      std::iota(order.begin() + begin, order.end(), begin);
    });
  }
  bool is_smaller(int64_t a, int64_t b) const { return is_less<T>(values[a], values[b]); }
  auto ascending() const {
    return [this](int64_t a, int64_t b) {
      return is_less<T>(values[a], values[b]) || (!is_less<T>(values[b], values[a]) && a < b);
    };
  }
  auto descending() const {
    return [this](int64_t a, int64_t b) {
      return is_less<T>(values[b], values[a]) || (!is_less<T>(values[a], values[b]) && a < b);
    };
  }
};

// Calls fn(order) with `less`, which in a long line checks for cancellation.
template <class Less, class Fn>
void with_order(size_t count, Less less, Fn&& fn) {
  if (count < static_cast<size_t>(kPieceElements)) return fn(less);
  int64_t calls = 0;
  fn(WatchedOrder<Less>(less, calls));
}

// Calls sorter(line) for every line, which puts the first `kept` elements of its order in place; then writes their
// values and indices.
template <class Sorter>
void sort_lines(const Tensor& x, int64_t dim, int64_t kept, Tensor& values, Tensor& indices, Sorter&& sorter) {
  if (values.numel() == 0) return;
  const bool is_scalar = x.ndim() == 0;
  const auto outer_of = [&](const Tensor& t) {
    Dims sizes = t.sizes(), strides = t.strides();
    if (!is_scalar) {
      sizes.erase(dim);
      strides.erase(dim);
    }
    return element_offsets(sizes, strides);
  };
  const auto from_offsets = outer_of(x), value_offsets = outer_of(values), index_offsets = outer_of(indices);
  const int64_t count = is_scalar ? 1 : x.sizes()[dim], from_stride = is_scalar ? 1 : x.strides()[dim];
  const int64_t value_stride = is_scalar ? 1 : values.strides()[dim],
                index_stride = is_scalar ? 1 : indices.strides()[dim];
  dispatch_all(x.dtype(), "sort", [&]<class T>() {
    const T* from = x.data<T>();
    T* to = values.data<T>();
    int64_t* index = indices.data<int64_t>();
    parallel_for(static_cast<int64_t>(from_offsets.size()), std::max<int64_t>(1, 4096 / std::max<int64_t>(count, 1)),
                 [&](int64_t begin, int64_t end) {
                   Line<T> line;
                   for (int64_t i = begin; i < end; ++i) {
                     line.load(from + from_offsets[i], count, from_stride);
                     sorter(line);
                     in_pieces(kept, kPieceElements, [&](int64_t first, int64_t last) {
                       for (int64_t k = first; k < last; ++k) {
                         to[value_offsets[i] + k * value_stride] = line.values[line.order[k]];
                         index[index_offsets[i] + k * index_stride] = line.order[k];
                       }
                     });
                   }
                 });
  });
}

void sort_kernel(const KernelContext&, const Tensor& x, int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  sort_lines(x, dim, x.ndim() == 0 ? 1 : x.sizes()[dim], values, indices, [&](auto& line) {
    const auto sort = [&](auto less) { std::sort(line.order.begin(), line.order.end(), less); };
    descending ? with_order(line.order.size(), line.descending(), sort)
               : with_order(line.order.size(), line.ascending(), sort);
  });
}

void stable_kernel(const KernelContext& context, const Tensor& x, std::optional<bool>, int64_t dim, bool descending,
                   Tensor& values, Tensor& indices) {
  sort_kernel(context, x, dim, descending, values, indices);
}

void argsort_kernel(const KernelContext& context, const Tensor& x, int64_t dim, bool descending, Tensor& indices) {
  Tensor values = Tensor::empty(x.sizes(), x.dtype());  // a placeholder for its memory
  sort_kernel(context, x, dim, descending, values, indices);
}

void argsort_stable_kernel(const KernelContext& context, const Tensor& x, bool, int64_t dim, bool descending,
                           Tensor& indices) {
  argsort_kernel(context, x, dim, descending, indices);
}

void topk_kernel(const KernelContext&, const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted,
                 Tensor& values, Tensor& indices) {
  const int64_t kept = x.ndim() == 0 ? 1 : k;  // a 0-d tensor holds nothing else
  if (kept == 0) return;
  sort_lines(x, wrap_dim(dim, x.ndim()), kept, values, indices, [&](auto& line) {
    const auto select = [&](auto&& before) {
      const auto begin = line.order.begin(), end = line.order.end();
      // A heap for few of many elements; a partition otherwise. The choice among equal values is PyTorch's.
      if (kept * 64 <= static_cast<int64_t>(line.order.size())) {
        std::partial_sort(begin, begin + kept, end, before);
      } else {
        std::nth_element(begin, begin + (kept - 1), end, before);
        if (sorted) std::sort(begin, begin + (kept - 1), before);
      }
    };
    const auto larger = [&](int64_t a, int64_t b) { return line.is_smaller(b, a); };
    const auto smaller = [&](int64_t a, int64_t b) { return line.is_smaller(a, b); };
    largest ? with_order(line.order.size(), larger, select) : with_order(line.order.size(), smaller, select);
  });
}

void kth_kernel(const KernelContext&, const Tensor& x, int64_t k, int64_t dim, bool keepdim, Tensor& values,
                Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  const bool restores = !keepdim && x.ndim() > 0;
  Tensor wide_values = restores ? unsqueeze(values, dim) : values,
         wide_indices = restores ? unsqueeze(indices, dim) : indices;
  sort_lines(x, dim, 1, wide_values, wide_indices, [&](auto& line) {
    with_order(line.order.size(), line.ascending(), [&](auto less) {
      std::nth_element(line.order.begin(), line.order.begin() + (k - 1), line.order.end(), less);
    });
    line.order[0] = line.order[k - 1];
  });
}

IMPL("aten::sort", kCPU, sort_kernel);
IMPL("aten::sort.stable", kCPU, stable_kernel);
IMPL("aten::argsort", kCPU, argsort_kernel);
IMPL("aten::argsort.stable", kCPU, argsort_stable_kernel);
IMPL("aten::topk", kCPU, topk_kernel);
IMPL("aten::kthvalue", kCPU, kth_kernel);

}  // namespace
}  // namespace tensord::kernels
