// Sorting and selecting along a dimension, on the CPU.
#include <algorithm>
#include <bit>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/index/index.h"
#include "kernels/index/sort_keys.h"
#include "kernels/index/watched_order.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

// An element of a line: its key, and its position. The key is in the upper half of Item<uint32_t>'s bits.
template <class Key>
struct Item {
  Key index, key;
};

template <class Key>
bool is_before(const Item<Key>& a, const Item<Key>& b) {
  if constexpr (sizeof(Key) == 4) return std::bit_cast<uint64_t>(a) < std::bit_cast<uint64_t>(b);
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

// The lines of a tensor along a dimension: where each of them starts, and how far its elements are apart.
struct Lines {
  Lines(const Tensor& t, int64_t dim) : tensor(t) {
    Dims sizes = t.sizes(), strides = t.strides();
    if (t.ndim() > 0) {
      stride = strides[dim];
      sizes.erase(dim);
      strides.erase(dim);
    }
    offsets = element_offsets(sizes, strides);
  }
  const Tensor& tensor;
  int64_t stride = 1;
  std::vector<int64_t> offsets;
};

template <class Key>
void load_line(const Lines& from, size_t line, bool descending, int64_t count, std::vector<Item<Key>>& items) {
  const Key flipped = descending ? ~Key{0} : Key{0};
  items.reserve(static_cast<size_t>(count));
  dispatch_all(from.tensor.dtype(), "sort", [&]<class T>() {
    if constexpr (sizeof(SortKey<T>) <= sizeof(Key)) {
      const T* values = from.tensor.data<T>() + from.offsets[line];
      in_pieces(count, kPieceElements, [&](int64_t begin, int64_t end) {
        items.resize(static_cast<size_t>(end));
        for (int64_t i = begin; i < end; ++i)
          items[i] = {static_cast<Key>(i), static_cast<Key>(sort_key(values[i * from.stride])) ^ flipped};
      });
    }
  });
}

template <class Key>
void store_line(const Lines& from, size_t line, int64_t kept, const std::vector<Item<Key>>& items, const Lines& values,
                const Lines& indices) {
  int64_t* index = indices.tensor.data<int64_t>() + indices.offsets[line];
  dispatch_all(from.tensor.dtype(), "sort", [&]<class T>() {
    const T* in = from.tensor.data<T>() + from.offsets[line];
    T* out = values.tensor.data<T>() + values.offsets[line];
    in_pieces(kept, kPieceElements, [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k) {
        const auto at = static_cast<int64_t>(items[k].index);
        out[k * values.stride] = in[at * from.stride];
        index[k * indices.stride] = at;
      }
    });
  });
}

// Calls sorter(items) for every line, which puts the first `kept` ones in place; then writes their values and indices.
template <class Sorter>
void sort_lines(const Tensor& x, int64_t dim, int64_t kept, bool descending, Tensor& values, Tensor& indices,
                const Sorter& sorter) {
  if (values.numel() == 0) return;
  const Lines from(x, dim), values_to(values, dim), indices_to(indices, dim);
  const int64_t count = x.ndim() == 0 ? 1 : x.sizes()[dim];
  const auto run = [&]<class Key>(Key) {
    parallel_for(static_cast<int64_t>(from.offsets.size()), std::max<int64_t>(1, 4096 / std::max<int64_t>(count, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<Item<Key>> items;
                   for (int64_t i = begin; i < end; ++i) {
                     load_line(from, static_cast<size_t>(i), descending, count, items);
                     sorter(items);
                     store_line(from, static_cast<size_t>(i), kept, items, values_to, indices_to);
                   }
                 });
  };
  size_of(x.dtype()) == 8 || count > UINT32_MAX ? run(uint64_t{}) : run(uint32_t{});
}

// Calls fn(order) with `less`, which in a long line checks for cancellation.
template <class Less, class Fn>
void with_order(size_t count, Less less, Fn&& fn) {
  if (count < static_cast<size_t>(kPieceElements)) return fn(less);
  int64_t calls = 0;
  fn(WatchedOrder<Less>(less, calls));
}

void sort_kernel(const KernelContext&, const Tensor& x, int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  sort_lines(x, dim, x.ndim() == 0 ? 1 : x.sizes()[dim], descending, values, indices,
             []<class Key>(std::vector<Item<Key>>& items) {
               with_order(items.size(), is_before<Key>,
                          [&](auto before) { std::sort(items.begin(), items.end(), before); });
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
  const auto select = [&]<class Key>(std::vector<Item<Key>>& items) {
    const auto has_smaller_key = [](const Item<Key>& a, const Item<Key>& b) { return a.key < b.key; };
    with_order(items.size(), has_smaller_key, [&](auto before) {
      const auto begin = items.begin(), end = items.end();
      // A heap for few of many elements; a partition otherwise. The choice among equal values is PyTorch's.
      if (kept * 64 <= static_cast<int64_t>(items.size())) {
        std::partial_sort(begin, begin + kept, end, before);
      } else {
        std::nth_element(begin, begin + (kept - 1), end, before);
        if (sorted) std::sort(begin, begin + (kept - 1), before);
      }
    });
  };
  sort_lines(x, wrap_dim(dim, x.ndim()), kept, largest, values, indices, select);
}

void kth_kernel(const KernelContext&, const Tensor& x, int64_t k, int64_t dim, bool keepdim, Tensor& values,
                Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  const bool restores = !keepdim && x.ndim() > 0;
  Tensor wide_values = restores ? unsqueeze(values, dim) : values,
         wide_indices = restores ? unsqueeze(indices, dim) : indices;
  sort_lines(x, dim, 1, false, wide_values, wide_indices, [&]<class Key>(std::vector<Item<Key>>& items) {
    with_order(items.size(), is_before<Key>,
               [&](auto before) { std::nth_element(items.begin(), items.begin() + (k - 1), items.end(), before); });
    items[0] = items[static_cast<size_t>(k - 1)];
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
