#include <algorithm>
#include <numeric>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/index/index.h"
#include "kernels/index/watched_order.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/view/view.h"

// Sorting and selecting along a dimension. Equal values keep their order; NaN counts as largest.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::TensorMeta;

template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>)
    return a < b;
  else
    return (a != a) ? false : (b != b) ? true : a < b;
}

// One line of a tensor along the sorted dimension, copied, with its order after sorting.
template <class T>
struct Line {
  std::vector<T> values;
  std::vector<int64_t> order;

  void load(const T* from, int64_t count, int64_t stride) {
    values.resize(static_cast<size_t>(count));
    order.resize(static_cast<size_t>(count));
    in_pieces(count, kPieceElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] = from[i * stride];
    });
    std::iota(order.begin(), order.end(), 0);
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

// Calls fn(order) with `less`, which in a long line looks whether the work is given up.
template <class Less, class Fn>
void with_order(size_t count, Less less, Fn&& fn) {
  if (count < static_cast<size_t>(kPieceElements)) return fn(less);
  int64_t calls = 0;
  fn(WatchedOrder<Less>(less, calls));
}

// Calls sorter(line) for every line, which puts the first `kept` of its order in place; then
// writes their values and indices.
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

// In the tensor's own order of dimensions.
std::vector<TensorMeta> sort_meta(const Tensor& x, int64_t dim, bool) {
  wrap_dim(dim, x.ndim());
  const std::array operands{Operand(x)};
  return {infer_pointwise(operands, x.dtype()), infer_pointwise(operands, DType::kInt64)};
}
void sort_kernel(const KernelContext&, const Tensor& x, int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  sort_lines(x, dim, x.ndim() == 0 ? 1 : x.sizes()[dim], values, indices, [&](auto& line) {
    const auto sort = [&](auto less) { std::sort(line.order.begin(), line.order.end(), less); };
    descending ? with_order(line.order.size(), line.descending(), sort)
               : with_order(line.order.size(), line.ascending(), sort);
  });
}
std::vector<TensorMeta> stable_meta(const Tensor& x, std::optional<bool>, int64_t dim, bool descending) {
  return sort_meta(x, dim, descending);
}
void stable_kernel(const KernelContext& context, const Tensor& x, std::optional<bool>, int64_t dim, bool descending,
                   Tensor& values, Tensor& indices) {
  sort_kernel(context, x, dim, descending, values, indices);
}

TensorMeta argsort_meta(const Tensor& x, int64_t dim, bool descending) { return sort_meta(x, dim, descending)[1]; }
void argsort_kernel(const KernelContext& context, const Tensor& x, int64_t dim, bool descending, Tensor& indices) {
  Tensor values = Tensor::empty(x.sizes(), x.dtype());  // only its memory is used
  sort_kernel(context, x, dim, descending, values, indices);
}
TensorMeta argsort_stable_meta(const Tensor& x, bool, int64_t dim, bool descending) {
  return argsort_meta(x, dim, descending);
}
void argsort_stable_kernel(const KernelContext& context, const Tensor& x, bool, int64_t dim, bool descending,
                           Tensor& indices) {
  argsort_kernel(context, x, dim, descending, indices);
}

std::vector<TensorMeta> topk_meta(const Tensor& x, int64_t k, int64_t dim, bool, bool) {
  dim = wrap_dim(dim, x.ndim());
  check(k >= 0 && k <= (x.ndim() == 0 ? 1 : x.sizes()[dim]), "selected index k out of range");
  Dims sizes = x.sizes();
  if (!sizes.empty()) sizes[dim] = k;
  return {{sizes, x.dtype(), {}, x.device()}, {sizes, DType::kInt64, {}, x.device()}};
}
void topk_kernel(const KernelContext&, const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted,
                 Tensor& values, Tensor& indices) {
  const int64_t kept = x.ndim() == 0 ? 1 : k;  // of a scalar always itself
  if (kept == 0) return;
  sort_lines(x, wrap_dim(dim, x.ndim()), kept, values, indices, [&](auto& line) {
    const auto select = [&](auto&& before) {
      const auto begin = line.order.begin(), end = line.order.end();
      // Few of many: a heap; else a partition. Which of equal values win is as in PyTorch.
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

std::vector<TensorMeta> kth_meta(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, x.ndim());
  check(k > 0 && k <= (x.ndim() == 0 ? 1 : x.sizes()[dim]), "kthvalue(): selected number k out of range for dimension ",
        dim);
  Dims sizes = x.sizes();
  if (!sizes.empty()) {
    if (keepdim)
      sizes[dim] = 1;
    else
      sizes.erase(dim);
  }
  return {{sizes, x.dtype(), {}, x.device()}, {sizes, DType::kInt64, {}, x.device()}};
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

using ops::GradArgs;

// The values' gradient goes to where they were selected. `dim_argument` and the argument keepdim, or
// -1 for results that keep their dimension.
gradient::GradientFn selected(size_t dim_argument, int keepdim_argument = -1) {
  return gradient::of_first([=](const GradArgs& args, Tensor g) {
    const int64_t dim = args.inputs[dim_argument].to_int();
    Tensor indices = args.outputs[1].to_tensor();
    const Tensor& x = args.inputs[0].to_tensor();
    if (keepdim_argument >= 0 && !args.inputs[static_cast<size_t>(keepdim_argument)].to_bool() && x.ndim() > 0) {
      g = ops::call("aten::unsqueeze", g, dim);
      indices = ops::call("aten::unsqueeze", indices, dim);
    }
    return ops::call("aten::scatter.src", gradient::zeros_like(x), dim, indices, g);
  });
}

OP("aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
    .infer(sort_meta)
    .gradient(selected(1))
    .saves("result1");
KERNEL("aten::sort", kCPU, sort_kernel);
OP("aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
   "indices)")
    .infer(stable_meta)
    .gradient(selected(2))
    .saves("result1");
KERNEL("aten::sort.stable", kCPU, stable_kernel);
OP("aten::msort(Tensor self) -> Tensor")
    .direct([](const Tensor& x) {
      if (x.is_meta()) return Tensor::meta(x.sizes(), x.dtype(), x.device());
      return ops::call("aten::sort", x, 0, false);
    })
    .composite();
OP("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor").infer(argsort_meta);
KERNEL("aten::argsort", kCPU, argsort_kernel);
OP("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
    .infer(argsort_stable_meta);
KERNEL("aten::argsort.stable", kCPU, argsort_stable_kernel);
OP("aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
    .infer(topk_meta)
    .gradient(selected(2))
    .saves("result1");
KERNEL("aten::topk", kCPU, topk_kernel);
OP("aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .infer(kth_meta)
    .gradient(selected(2, 3))
    .saves("result1");
KERNEL("aten::kthvalue", kCPU, kth_kernel);

}  // namespace
}  // namespace tensord::kernels
