// Walks the kept and reduced dimensions of a reduction and feeds its inner loops:
//   rows     the reduced dimensions hold the smallest stride: each output folds dense rows
//   columns  a kept dimension does (channels-last means): blocks of outputs fold in step
//   split    one output only: threads fold parts of it
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/lanes.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"

namespace tensord::kernels {
namespace {

struct Job {
  const Reduction& reduction;
  const ReduceLoops& loops;
  DType stored, loop;
  const char* data;
  int64_t element_size;
};

// Folds `count` elements at `data` with a step into one accumulator.
void fold_row(const Job& job, const char* data, int64_t count, int64_t step, double center, Accumulator* out) {
  if (step == 1 && job.stored == job.loop) return job.loops.row(data, count, center, job.reduction.power, out);
  alignas(64) char tile[kTile * 8];
  for (int64_t begin = 0; begin < count; begin += kTile) {
    const int64_t n = std::min(kTile, count - begin);
    load_tile(job.stored, data + begin * step * job.element_size, step, job.loop, tile, n);
    job.loops.row(tile, n, center, job.reduction.power, out);
  }
}

// Folds rows of columns; strides in elements.
void fold_columns(const Job& job, const char* data, int64_t rows, int64_t row_step, int64_t count, int64_t step,
                  const double* centers, Accumulator* out) {
  if (step == 1 && job.stored == job.loop)
    return job.loops.columns(data, rows, row_step, count, centers, job.reduction.power, out);
  alignas(64) char tile[kTile * 8];
  for (int64_t r = 0; r < rows; ++r, data += row_step * job.element_size) {
    for (int64_t begin = 0; begin < count; begin += kTile) {
      const int64_t n = std::min(kTile, count - begin);
      load_tile(job.stored, data + begin * step * job.element_size, step, job.loop, tile, n);
      job.loops.columns(tile, 1, 0, n, centers == nullptr ? nullptr : centers + begin, job.reduction.power,
                        out + begin);
    }
  }
}

// Turns accumulators into elements of `out`.
void store(const Job& job, Accumulator* accumulators, int64_t count, const Tensor& out, int64_t offset, int64_t step) {
  if (job.loop != DType::kInt64) {
    for (int64_t i = 0; i < count; ++i) {
      double value = accumulators[i].value * job.reduction.scale;
      if (job.reduction.root == 0.5)
        value = std::sqrt(value);
      else if (job.reduction.root != 1)
        value = std::pow(value, job.reduction.root);
      accumulators[i].value = value;
    }
  }
  const auto size = static_cast<int64_t>(size_of(out.dtype()));
  store_tile(job.loop == DType::kInt64 ? DType::kInt64 : DType::kFloat64, accumulators, out.dtype(),
             static_cast<char*>(out.raw_data()) + offset * size, step, count);
}

// Sizes and strides of the dimensions that are (not) reduced.
struct Split {
  Dims kept_sizes, kept_in, kept_out, kept_center, reduced_sizes, reduced_in;
};
Split split_dims(const Reduction& reduction, const Tensor& in, const Tensor& out) {
  Split split;
  for (size_t d = 0; d < in.sizes().size(); ++d) {
    if (in.sizes()[d] == 1) continue;
    if (out.sizes()[d] == in.sizes()[d]) {
      split.kept_sizes.push_back(in.sizes()[d]);
      split.kept_in.push_back(in.strides()[d]);
      split.kept_out.push_back(out.strides()[d]);
      split.kept_center.push_back(reduction.centers == nullptr ? 0 : reduction.centers->strides()[d]);
    } else {
      split.reduced_sizes.push_back(in.sizes()[d]);
      split.reduced_in.push_back(in.strides()[d]);
    }
  }
  return split;
}

int64_t smallest(const Dims& strides) {
  int64_t best = INT64_MAX;
  for (int64_t stride : strides) best = stride == 0 ? best : std::min(best, stride);
  return best;
}

const double* centers_of(const Reduction& reduction) {
  return reduction.centers == nullptr ? nullptr : reduction.centers->data<double>();
}

void reduce_rows(const Job& job, const Split& split, const Tensor& out) {
  const LoopNest<1> inner(split.reduced_sizes, {split.reduced_in});
  const LoopNest<3> outer(split.kept_sizes, {split.kept_in, split.kept_out, split.kept_center});
  const double* centers = centers_of(job.reduction);
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, inner.numel()));
  outer.parallel_rows(
      grain, [&](const std::array<int64_t, 3>& offset, int64_t count, const std::array<int64_t, 3>& step) {
        for (int64_t i = 0; i < count; ++i) {
          Accumulator accumulator = job.loops.start;
          const double center = centers == nullptr ? 0 : centers[offset[2] + i * step[2]];
          const char* base = job.data + (offset[0] + i * step[0]) * job.element_size;
          inner.rows(0, inner.numel(),
                     [&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& stride) {
                       fold_row(job, base + at[0] * job.element_size, n, stride[0], center, &accumulator);
                     });
          store(job, &accumulator, 1, out, offset[1] + i * step[1], 1);
        }
      });
}

void reduce_columns(const Job& job, const Split& split, const Tensor& out) {
  const LoopNest<1> inner(split.reduced_sizes, {split.reduced_in});
  const LoopNest<3> outer(split.kept_sizes, {split.kept_in, split.kept_out, split.kept_center});
  const double* centers = centers_of(job.reduction);
  const int64_t grain = std::max<int64_t>(64, 32768 / std::max<int64_t>(1, inner.numel()));
  outer.parallel_rows(
      grain, [&](const std::array<int64_t, 3>& offset, int64_t count, const std::array<int64_t, 3>& step) {
        constexpr int64_t kColumns = 512;
        Accumulator accumulators[kColumns];
        double block_centers[kColumns];
        for (int64_t begin = 0; begin < count; begin += kColumns) {
          const int64_t n = std::min(kColumns, count - begin);
          std::fill(accumulators, accumulators + n, job.loops.start);
          for (int64_t i = 0; centers != nullptr && i < n; ++i)
            block_centers[i] = centers[offset[2] + (begin + i) * step[2]];
          const char* base = job.data + (offset[0] + begin * step[0]) * job.element_size;
          inner.rows(0, inner.numel(),
                     [&](const std::array<int64_t, 1>& at, int64_t rows, const std::array<int64_t, 1>& stride) {
                       fold_columns(job, base + at[0] * job.element_size, rows, stride[0], n, step[0],
                                    centers == nullptr ? nullptr : block_centers, accumulators);
                     });
          store(job, accumulators, n, out, offset[1] + begin * step[1], step[1]);
        }
      });
}

// Joins the accumulators of two parts with the reducer's own rule: an accumulator is folded
// in as if it were an element, which is right for all but the sums of mapped elements.
void join(const Job& job, const Accumulator& part, Accumulator* total) {
  const bool is_integer = job.loop == DType::kInt64;
  switch (job.reduction.reducer) {
    case Reducer::kProduct:
    case Reducer::kMax:
    case Reducer::kMin:
    case Reducer::kMaxAbsolute:
    case Reducer::kMinAbsolute:
    case Reducer::kAny:
    case Reducer::kAll:
      return reduce_loops(job.reduction.reducer, is_integer ? DType::kInt64 : DType::kFloat64)
          .row(&part, 1, 0, 0, total);
    default:
      if (is_integer)
        total->integer =
            static_cast<int64_t>(static_cast<uint64_t>(total->integer) + static_cast<uint64_t>(part.integer));
      else
        total->value += part.value;
  }
}

void reduce_to_one(const Job& job, const Split& split, const Tensor& out) {
  const LoopNest<1> inner(split.reduced_sizes, {split.reduced_in});
  const double center = job.reduction.centers == nullptr ? 0 : centers_of(job.reduction)[0];
  const int64_t parts = std::clamp<int64_t>(inner.numel() / 65536, 1, thread_budget());
  std::vector<Accumulator> partial(static_cast<size_t>(parts), job.loops.start);
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = inner.numel() * part / parts, end = inner.numel() * (part + 1) / parts;
      inner.rows(begin, end, [&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& stride) {
        fold_row(job, job.data + at[0] * job.element_size, n, stride[0], center, &partial[static_cast<size_t>(part)]);
      });
    }
  });
  for (int64_t part = 1; part < parts; ++part) join(job, partial[static_cast<size_t>(part)], &partial[0]);
  store(job, partial.data(), 1, out, 0, 1);
}

}  // namespace

void run_reduction(const Reduction& reduction, const Tensor& in, const Tensor& out) {
  if (out.numel() == 0) return;
  const DType loop = loop_dtype(reduction.compute);
  // A float16 sum of integers and the like is exact enough in float; what matters is that
  // elements reach the compute dtype's class.
  const Job job{reduction, reduce_loops(reduction.reducer, loop),    in.dtype(), loop,
                nullptr,   static_cast<int64_t>(size_of(in.dtype()))};
  if (in.numel() == 0) {
    std::vector<Accumulator> empty(static_cast<size_t>(out.numel()), job.loops.start);
    const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
    store(job, empty.data(), out.numel(), dense, 0, 1);
    if (!dense.is_same(out)) out.copy_from(dense);
    return;
  }
  Job ready = job;
  ready.data = static_cast<const char*>(in.raw_data());
  const Split split = split_dims(reduction, in, out);
  if (split.kept_sizes.empty()) return reduce_to_one(ready, split, out);
  if (smallest(split.kept_in) < smallest(split.reduced_in)) return reduce_columns(ready, split, out);
  reduce_rows(ready, split, out);
}

}  // namespace tensord::kernels
