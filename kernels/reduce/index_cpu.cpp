// On the CPU, row by row: indices of extremes, and running sums, products and extremes.
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/cancellation.h"
#include "core/ops/op.h"
#include "core/tensor/memory_order.h"
#include "kernels/base/lines.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
bool is_nan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}

// The first index of a dense row's extreme; the first NaN wins.
template <class T>
int64_t position_of(const T* row, int64_t count, Reducer reducer) {
  const ReduceLoops& loops = reduce_loops(reducer, dtype_of<T>);
  Accumulator best = loops.start;
  loops.row(row, count, 0, 0, &best);
  T value;
  if constexpr (std::is_integral_v<T>) {
    value = best.integer;
  } else {
    value = static_cast<T>(best.value);
    if (is_nan(value)) {
      for (int64_t i = 0; i < count; ++i) {
        if (is_nan(row[i])) return i;
      }
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if (row[i] == value) return i;
  }
  return 0;
}

// A dense row of T at `data`: in place, or converted into `scratch`.
template <class T>
const T* dense_row(const Tensor& in, int64_t offset, int64_t step, int64_t length, std::vector<T>& scratch) {
  const char* source = static_cast<const char*>(in.raw_data()) + offset * static_cast<int64_t>(size_of(in.dtype()));
  if (in.dtype() == dtype_of<T> && step == 1) return reinterpret_cast<const T*>(source);
  scratch.resize(static_cast<size_t>(length));
  load_tile(in.dtype(), source, step, dtype_of<T>, scratch.data(), length);
  return scratch.data();
}

// Calls fn.operator()<T>() with the loop type of `dtype`.
template <class Fn>
void with_loop_type(DType dtype, Fn&& fn) {
  switch (loop_dtype(dtype)) {
    case DType::kFloat32: return fn.template operator()<float>();
    case DType::kFloat64: return fn.template operator()<double>();
    default: return fn.template operator()<int64_t>();
  }
}

// `values` may be null. Both outputs have size 1 (or no dimension) at `dim`.
void find_extremes(const Tensor& in, int64_t dim, Reducer reducer, const Tensor* values, const Tensor& indices,
                   bool keepdim) {
  if (indices.numel() == 0) return;
  const int64_t length = line_length(in, dim), step = line_stride(in, dim);
  const auto outer = [&](const Tensor& out) { return keepdim ? without(out.strides(), dim) : out.strides(); };
  const auto size = static_cast<int64_t>(size_of(in.dtype()));
  with_loop_type(in.dtype(), [&]<class T>() {
    for_each_line<3>(without(in.sizes(), dim),
                     {without(in.strides(), dim), outer(indices), values ? outer(*values) : outer(indices)}, length,
                     [&](const std::array<int64_t, 3>& offset) {
                       thread_local std::vector<T> scratch;
                       const int64_t position =
                           position_of(dense_row<T>(in, offset[0], step, length, scratch), length, reducer);
                       indices.data<int64_t>()[offset[1]] = position;
                       if (values == nullptr) return;
                       std::memcpy(static_cast<char*>(values->raw_data()) + offset[2] * size,
                                   static_cast<const char*>(in.raw_data()) + (offset[0] + position * step) * size,
                                   static_cast<size_t>(size));
                     });
  });
}

Tensor with_last(const Tensor& x, int64_t dim) {
  Dims order;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (i != dim) order.push_back(i);
  }
  order.push_back(dim);
  return permuted(x, order);
}

// Running sums and products in double (or int64).
template <class Step>
void scan(const Tensor& in, int64_t dim, const Tensor& out, Step step) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  constexpr int64_t kMin = 8192;
  if (in.numel() >= kMin && in.ndim() > 1 && line_stride(in, dim) != 1) {
    // Lanes with gaps would read a cache line for each element.
    const Tensor rotated = with_last(in, dim).contiguous(), result = Tensor::empty(rotated.sizes(), out.dtype());
    scan(rotated, -1, result, step);
    return with_last(out, dim).copy_from(result);
  }
  const int64_t length = line_length(in, dim), in_step = line_stride(in, dim), out_step = line_stride(out, dim);
  const auto run = [&]<class T>() {
    const auto in_size = static_cast<int64_t>(size_of(in.dtype()));
    const auto out_size = static_cast<int64_t>(size_of(out.dtype()));
    for_each_line<2>(without(in.sizes(), dim), {without(in.strides(), dim), without(out.strides(), dim)}, length,
                     [&](const std::array<int64_t, 2>& offset) {
                       thread_local std::vector<T> scratch;
                       // One element more than a part, for the last one of the part before.
                       scratch.resize(static_cast<size_t>(std::min(length, kPieceElements)) + 1);
                       T* const row = scratch.data() + 1;
                       const char* source = static_cast<const char*>(in.raw_data()) + offset[0] * in_size;
                       char* target = static_cast<char*>(out.raw_data()) + offset[1] * out_size;
                       in_pieces(length, kPieceElements, [&](int64_t begin, int64_t end) {
                         const int64_t count = end - begin, before = begin > 0 ? 1 : 0;
                         load_tile(in.dtype(), source + begin * in_step * in_size, in_step, dtype_of<T>, row, count);
                         step(row - before, count + before);
                         store_tile(dtype_of<T>, row, out.dtype(), target + begin * out_step * out_size, out_step,
                                    count);
                         scratch[0] = row[count - 1];
                       });
                     });
  };
  if (is_floating(out.dtype()))
    run.template operator()<double>();
  else
    run.template operator()<int64_t>();
}
const auto kSumStep = []<class T>(T* row, int64_t count) {
  for (int64_t i = 1; i < count; ++i) row[i] += row[i - 1];
};
const auto kProductStep = []<class T>(T* row, int64_t count) {
  for (int64_t i = 1; i < count; ++i) row[i] *= row[i - 1];
};
// log(exp(a) + exp(b)) without overflow.
const auto kLogSumStep = []<class T>(T* row, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const double high = std::max(row[i], row[i - 1]), low = std::min(row[i], row[i - 1]);
    if (std::isnan(row[i - 1]))  // stays
      row[i] = row[i - 1];
    else if (std::isinf(high))
      row[i] = static_cast<T>(high);
    else
      row[i] = static_cast<T>(high + std::log1p(std::exp(low - high)));
  }
};

// Running extremes with their indices. Later equals win, and a NaN stays.
void running_extreme(const Tensor& in, int64_t dim, bool is_max, const Tensor& values, const Tensor& indices) {
  if (in.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  const int64_t length = line_length(in, dim), in_step = line_stride(in, dim), out_step = line_stride(values, dim);
  dispatch_all(in.dtype(), "cummax", [&]<class T>() {
    for_each_line<2>(without(in.sizes(), dim), {without(in.strides(), dim), without(values.strides(), dim)}, length,
                     [&](const std::array<int64_t, 2>& offset) {
                       const T* source = in.data<T>() + offset[0];
                       int64_t best = 0;
                       for (int64_t i = 0; i < length; ++i) {
                         if (i % kPieceElements == kPieceElements - 1) check_work_cancelled();
                         const auto x = static_cast<ComputeType<T>>(source[i * in_step]),
                                    y = static_cast<ComputeType<T>>(source[best * in_step]);
                         const bool better = is_max ? x >= y : x <= y;
                         if (is_nan(x) || (!is_nan(y) && better)) best = i;
                         values.data<T>()[offset[1] + i * out_step] = source[best * in_step];
                         indices.data<int64_t>()[offset[1] + i * out_step] = best;
                       }
                     });
  });
}

IMPL("aten::cumsum", kCPU, [](const KernelContext&, const Tensor& in, int64_t dim, std::optional<DType>, Tensor& out) {
  scan(in, dim, out, kSumStep);
});
IMPL("aten::cumprod", kCPU, [](const KernelContext&, const Tensor& in, int64_t dim, std::optional<DType>, Tensor& out) {
  scan(in, dim, out, kProductStep);
});
IMPL("aten::logcumsumexp", kCPU,
     [](const KernelContext&, const Tensor& in, int64_t dim, Tensor& out) { scan(in, dim, out, kLogSumStep); });

void add_extreme(const char* name, Reducer reducer) {
  const std::string by_dim = concat("aten::", name, ".dim"), position = concat("aten::arg", name);
  ops::ImplBuilder(
      by_dim.c_str(), kCPU,
      [reducer](const KernelContext&, const Tensor& in, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
        find_extremes(in, wrap_dim(dim, in.ndim()), reducer, &values, indices, keepdim && in.ndim() > 0);
      });
  ops::ImplBuilder(
      position.c_str(), kCPU,
      [reducer](const KernelContext&, const Tensor& in, std::optional<int64_t> dim, bool keepdim, Tensor& indices) {
        if (dim)
          return find_extremes(in, wrap_dim(*dim, in.ndim()), reducer, nullptr, indices, keepdim && in.ndim() > 0);
        const Tensor flat = in.contiguous().as_view({in.numel()}, {1}, in.is_contiguous() ? in.offset() : 0);
        find_extremes(flat, 0, reducer, nullptr, indices.as_view({}, {}, indices.offset()), false);
      });
}
void add_running(const char* op, bool is_max) {
  ops::ImplBuilder(op, kCPU,
                   [is_max](const KernelContext&, const Tensor& in, int64_t dim, Tensor& values, Tensor& indices) {
                     running_extreme(in, dim, is_max, values, indices);
                   });
}

[[maybe_unused]] const bool index_cpu_registered = [] {
  add_extreme("max", Reducer::kMax);
  add_extreme("min", Reducer::kMin);
  add_running("aten::cummax", true);
  add_running("aten::cummin", false);
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
