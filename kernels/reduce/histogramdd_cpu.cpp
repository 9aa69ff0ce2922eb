// histogram and histogramdd: their loops on the processor, and compositions of other operators on CUDA's devices.
#include <algorithm>
#include <cmath>

#include "kernels/expr/compose.h"

#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Returns;
using MaybeRange = std::optional<std::vector<double>>;
using MaybeTensor = std::optional<Tensor>;
using Edges = std::vector<Tensor>;

void check_points(const char* name, const Tensor& x) {
  if (x.dtype() != DType::kFloat32 && x.dtype() != DType::kFloat64) fail_dtype(name, x.dtype());
}

// Rows of numbers: all dimensions but the last are one.
Tensor as_rows(const Tensor& x) {
  return ops::reshape(x, Dims{x.numel() / std::max<int64_t>(x.sizes().back(), 1), x.sizes().back()});
}

void check_dims(const char* name, const Tensor& x, size_t given) {
  check(x.ndim() >= 2, name, ": input tensor should have at least 2 dimensions, but got ", x.ndim());
  check(given == static_cast<size_t>(x.sizes().back()), name, ": expected ", x.sizes().back(),
        " sequences of bin edges for a ", x.sizes().back(), "-dimensional histogram but got ", given);
}

void check_weight(const char* name, const Tensor& x, const MaybeTensor& weight) {
  if (!weight) return;
  const Dims wanted(x.sizes().span().first(x.sizes().size() - 1));
  check(weight->sizes() == wanted, name,
        ": if weight tensor is provided it should have the same shape as the input tensor "
        "excluding its innermost dimension, but got input with shape ",
        x.sizes(), " and weight with shape ", weight->sizes());
  check(weight->dtype() == x.dtype(), name,
        ": if weight tensor is provided, input tensor and weight tensor should have the "
        "same dtype, but got input(",
        name_of(x.dtype()), "), and weight(", name_of(weight->dtype()), ")");
}

// Equally spaced edges in each dimension, over the given range or that of the points.
Edges edges_of(const char* name, const Tensor& x, const Dims& counts, const MaybeRange& range) {
  check_points(name, x);
  check_dims(name, x, counts.size());
  const int64_t dims = x.sizes().back();
  check(!range || range->size() == static_cast<size_t>(2 * dims), name, ": for a ", dims,
        "-dimensional histogram range should "
        "have ",
        2 * dims, " elements, but got ", range ? range->size() : 0);
  Edges edges;
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t count = counts[static_cast<size_t>(d)];
    check(count > 0 && count < (int64_t{1} << 31), name, ": bins must be > 0 and below 2^31, but got ", count,
          " for dimension ", d);
    double low = 0, high = 1;
    if (range) {
      low = (*range)[static_cast<size_t>(2 * d)], high = (*range)[static_cast<size_t>(2 * d + 1)];
    } else if (x.numel() > 0) {
      const Tensor column = ops::select(x, -1, d);
      low = ops::min(column).item_double(), high = ops::max(column).item_double();
    }
    check(std::isfinite(low) && std::isfinite(high), name, ": dimension ", d, "'s range [", low, ", ", high,
          "] is not finite");
    check(low <= high, name, ": min should not exceed max, but got min ", low, " max ", high, " for dimension ", d);
    if (low == high) low -= 0.5, high += 0.5;
    edges.push_back(ops::linspace(low, high, count + 1, {.dtype = x.dtype(), .device = x.device()}));
  }
  return edges;
}

// The bin of a number. An edge belongs to the bin that it begins, but the last edge belongs to the bin before it. −1:
// outside.
template <class T>
int64_t box_of(T value, const T* edges, int64_t count) {
  if (!(value >= edges[0] && value <= edges[count - 1])) return -1;
  return std::min<int64_t>(std::upper_bound(edges, edges + count, value) - edges - 1, count - 2);
}

template <class T>
void count_rows(const Tensor& rows, const MaybeTensor& weight, const Edges& edges, const Tensor& out) {
  const int64_t dims = rows.size(1);
  const T* x = rows.data<T>();
  const T* w = weight ? weight->data<T>() : nullptr;
  T* count = out.data<T>();
  for (int64_t i = 0; i < rows.size(0); ++i, x += dims) {
    int64_t at = 0, box = 0;
    for (int64_t d = 0; d < dims && box >= 0; ++d) {
      const Tensor& own = edges[static_cast<size_t>(d)];
      box = box_of(x[d], own.data<T>(), own.numel());
      at = at * (own.numel() - 1) + box;
    }
    if (box >= 0) count[at] += w ? w[i] : T(1);
  }
}

// The same on other devices; what is outside is counted behind the last box.
Tensor count_rows_on_device(const Tensor& rows, const MaybeTensor& weight, const Edges& edges, const Dims& sizes) {
  const ops::Scalar one(1);
  Tensor at = ops::zeros(Dims{rows.size(0)}, {.dtype = DType::kInt64, .device = rows.device()});
  Tensor is_inside = ops::ones(at.sizes(), {.dtype = DType::kBool, .device = rows.device()});
  int64_t boxes = 1;
  for (size_t d = 0; d < edges.size(); ++d) {
    const Tensor x = ops::select(rows, 1, static_cast<int64_t>(d)).contiguous();
    const Tensor after = ops::ge(x, ops::select(edges[d], 0, 0)), before = ops::le(x, ops::select(edges[d], 0, -1));
    is_inside = ops::logical_and(is_inside, ops::logical_and(after, before));
    const Tensor box = ops::sub(ops::searchsorted(edges[d], x, {.right = true}), one);
    at = ops::add(ops::mul(at, ops::Scalar(sizes[d])), ops::clamp_max(box, ops::Scalar(sizes[d] - 1)));
    boxes *= sizes[d];
  }
  const Tensor counts = ops::zeros(Dims{boxes + 1}, {.dtype = rows.dtype(), .device = rows.device()});
  const Tensor terms = weight ? ops::reshape(*weight, Dims{-1}) : ops::ones_like(ops::to(at, rows.dtype()));
  ops::scatter_add_(counts, 0, ops::where(is_inside, at, ops::full_like(at, ops::Scalar(boxes))), terms);
  return ops::reshape(ops::narrow(counts, 0, 0, boxes), sizes);
}

Tensor counted(const char* name, const Tensor& x, const Edges& given, const MaybeTensor& weight, bool density) {
  check_points(name, x);
  check_dims(name, x, given.size());
  check_weight(name, x, weight);
  Edges edges;
  Dims sizes;
  for (const Tensor& own : given) {
    check(own.ndim() == 1 && own.numel() > 1, name,
          ": bins tensors should have one dimension and at least 2 edges, but got ", own.sizes());
    check(own.dtype() == x.dtype(), name, ": input tensor and bins tensors should have the same dtype, but got ",
          name_of(x.dtype()), " and ", name_of(own.dtype()));
    edges.push_back(own.contiguous());
    sizes.push_back(own.numel() - 1);
  }
  checked_numel(sizes);
  if (x.is_meta()) return Tensor::meta(sizes, x.dtype(), x.device());
  const Tensor rows = as_rows(x).contiguous();
  const MaybeTensor weights = weight ? MaybeTensor(weight->contiguous()) : std::nullopt;
  Tensor out = ops::zeros(sizes, {.dtype = x.dtype(), .device = x.device()});
  if (!x.device().is_host())
    out = count_rows_on_device(rows, weights, edges, sizes);
  else if (x.dtype() == DType::kFloat32)
    count_rows<float>(rows, weights, edges, out);
  else
    count_rows<double>(rows, weights, edges, out);
  if (!density) return out;
  out = ops::div(out, ops::sum(out));
  for (size_t d = 0; d < edges.size(); ++d) {
    Dims shape(edges.size(), 1);
    shape[d] = sizes[d];
    out = ops::div(out, ops::reshape(ops::diff(edges[d]), shape));
  }
  return out;
}

MaybeTensor flat(const MaybeTensor& x) { return x ? MaybeTensor(ops::reshape(*x, Dims{-1})) : std::nullopt; }
Tensor as_column(const Tensor& x) { return ops::reshape(x, Dims{-1, 1}); }
void check_flat_weight(const Tensor& x, const MaybeTensor& weight) {
  check(!weight || weight->sizes() == x.sizes(),
        "torch.histogram(): if weight tensor is provided it should have the same shape "
        "as the input tensor, but got input ",
        x.sizes(), " and weight ", weight ? weight->sizes() : Dims{});
}

constexpr const char* kName = "torch.histogramdd()";
Returns histogramdd(const Tensor& x, const Edges& edges, const MaybeTensor& weight, bool density) {
  return {{counted(kName, x, edges, weight, density), ops::make_tensor_list(edges)}};
}

std::tuple<Tensor, Tensor> run_histogram_bins_tensor(const Tensor& x, const Tensor& bins, const MaybeTensor& weight,
                                                     bool density) {
  check_flat_weight(x, weight);
  return {counted("torch.histogram()", as_column(x), {bins}, flat(weight), density), ops::clone(bins)};
}

std::tuple<Tensor, Tensor> run_histogram_bin_ct(const Tensor& x, int64_t bins, const MaybeRange& range,
                                                const MaybeTensor& weight, bool density) {
  check_flat_weight(x, weight);
  const Tensor column = as_column(x);
  const Edges edges = edges_of("torch.histogram()", column, Dims{bins}, range);
  return {counted("torch.histogram()", column, edges, flat(weight), density), edges[0]};
}

Edges run_histogramdd_bin_edges(const Tensor& x, const Dims& bins, const MaybeRange& range, const MaybeTensor&, bool) {
  return edges_of(kName, x, bins, range);
}

Tensor run_histogramdd_from_bin_cts(const Tensor& x, const Dims& bins, const MaybeRange& range,
                                    const MaybeTensor& weight, bool density) {
  return counted(kName, x, edges_of(kName, x, bins, range), weight, density);
}

Tensor run_histogramdd_from_bin_tensors(const Tensor& x, const Edges& bins, const MaybeTensor& weight, bool density) {
  return counted(kName, x, bins, weight, density);
}

Returns run_histogramdd(const Tensor& x, const Dims& bins, const MaybeRange& range, const MaybeTensor& weight,
                        bool density) {
  return histogramdd(x, edges_of(kName, x, bins, range), weight, density);
}

Returns run_histogramdd_int_bins(const Tensor& x, int64_t bins, const MaybeRange& range, const MaybeTensor& weight,
                                 bool density) {
  check(x.ndim() >= 2, kName, ": input tensor should have at least 2 dimensions, but got ", x.ndim());
  const Dims counts(static_cast<size_t>(x.sizes().back()), bins);
  return histogramdd(x, edges_of(kName, x, counts, range), weight, density);
}

Returns run_histogramdd_tensorlist_bins(const Tensor& x, const Edges& bins, const MaybeRange&,
                                        const MaybeTensor& weight, bool density) {
  return histogramdd(x, bins, weight, density);
}

#define HISTOGRAM(NAME, FUNCTION) \
  IMPL(NAME, kCPU, FUNCTION);     \
  IMPL(NAME, kCUDA, FUNCTION)
HISTOGRAM("aten::histogram.bins_tensor", run_histogram_bins_tensor);
HISTOGRAM("aten::histogram.bin_ct", run_histogram_bin_ct);
HISTOGRAM("aten::_histogramdd_bin_edges", run_histogramdd_bin_edges);
HISTOGRAM("aten::_histogramdd_from_bin_cts", run_histogramdd_from_bin_cts);
HISTOGRAM("aten::_histogramdd_from_bin_tensors", run_histogramdd_from_bin_tensors);
HISTOGRAM("aten::histogramdd", run_histogramdd);
HISTOGRAM("aten::histogramdd.int_bins", run_histogramdd_int_bins);
HISTOGRAM("aten::histogramdd.TensorList_bins", run_histogramdd_tensorlist_bins);
#undef HISTOGRAM

}  // namespace
}  // namespace tensord::kernels
