// Walks the kept and reduced dimensions of a reduction and feeds its inner loops:
//   rows     the reduced dimensions hold the smallest stride: each output folds dense rows
//   columns  a kept dimension does (channels-last means): blocks of outputs fold in step
//   split    one output only: threads fold parts of it
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/cancellation.h"
#include "kernels/base/lines.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"

namespace tensord::kernels {
namespace {

// Checks for cancellation now and then: a tensor that repeats its elements may have any number of them.
class FoldWatch {
 public:
  void spend(int64_t elements) {
    if ((left_ -= elements) > 0) return;
    left_ = kFoldPiece;
    check_work_cancelled();
  }
  // Elements of a row between two checks: a multiple of the inner loops' blocks, so that sums keep their order.
  static constexpr int64_t kFoldPiece = kPieceElements << 4;

 private:
  int64_t left_ = kFoldPiece;
};

// Sizes and strides of the reduced (or kept) dimensions.
struct Split {
  Dims kept_sizes, kept_in, kept_out, kept_center, reduced_sizes, reduced_in;

  Split(const Reduction& reduction, const Tensor& in, const Tensor& out) {
    for (size_t d = 0; d < in.sizes().size(); ++d) {
      if (in.sizes()[d] == 1) continue;
      if (out.sizes()[d] == in.sizes()[d]) {
        kept_sizes.push_back(in.sizes()[d]);
        kept_in.push_back(in.strides()[d]);
        kept_out.push_back(out.strides()[d]);
        kept_center.push_back(reduction.centers == nullptr ? 0 : reduction.centers->strides()[d]);
      } else {
        reduced_sizes.push_back(in.sizes()[d]);
        reduced_in.push_back(in.strides()[d]);
      }
    }
  }
  LoopNest<1> inner() const { return LoopNest<1>(reduced_sizes, {reduced_in}); }
  LoopNest<3> outer() const { return LoopNest<3>(kept_sizes, {kept_in, kept_out, kept_center}); }
  static int64_t smallest(const Dims& strides) {
    int64_t best = INT64_MAX;
    for (int64_t stride : strides) best = stride == 0 ? best : std::min(best, stride);
    return best;
  }
};

}  // namespace

struct ReductionPlan::Memory {
  const char* in;
  char* out;
  const double* centers;
};

ReductionPlan::ReductionPlan(const Reduction& reduction, const Tensor& in, const Tensor& out, int threads)
    : reduction_(reduction),
      stored_(in.dtype()),
      loop_(loop_dtype(reduction.compute)),
      result_(out.dtype()),
      element_size_(static_cast<int64_t>(size_of(in.dtype()))),
      loops_(reduce_loops(reduction.reducer, loop_)),
      inner_(Split(reduction, in, out).inner()),
      outer_(Split(reduction, in, out).outer()) {
  const Split split(reduction, in, out);
  is_one_ = split.kept_sizes.empty();
  by_columns_ = Split::smallest(split.kept_in) < Split::smallest(split.reduced_in);
  parts_ = std::clamp<int64_t>(inner_.numel() / 65536, 1, threads);
  reduction_.centers = nullptr;
}

void ReductionPlan::run(const void* in, void* out, const double* centers, Accumulator* partial) const {
  const Memory memory{static_cast<const char*>(in), static_cast<char*>(out), centers};
  if (is_one_) return reduce_to_one(memory, partial);
  if (by_columns_) return reduce_columns(memory);
  reduce_rows(memory);
}

// Folds `count` elements, a step apart from `data` on, into one accumulator.
void ReductionPlan::fold_row(const char* data, int64_t count, int64_t step, double center, Accumulator* out) const {
  if (step == 1 && stored_ == loop_) {
    return in_pieces(count, FoldWatch::kFoldPiece, [&](int64_t begin, int64_t end) {
      loops_.row(data + begin * element_size_, end - begin, center, reduction_.power, out);
    });
  }
  alignas(64) char tile[kTile * 8];
  FoldWatch watch;
  for (int64_t begin = 0; begin < count; begin += kTile) {
    watch.spend(kTile);
    const int64_t n = std::min(kTile, count - begin);
    load_tile(stored_, data + begin * step * element_size_, step, loop_, tile, n);
    loops_.row(tile, n, center, reduction_.power, out);
  }
}

// Folds rows of columns; strides are in elements.
void ReductionPlan::fold_columns(const char* data, int64_t rows, int64_t row_step, int64_t count, int64_t step,
                                 const double* centers, Accumulator* out) const {
  FoldWatch watch;
  if (step == 1 && stored_ == loop_) {
    // In groups of four, as the loops take them.
    const int64_t piece = std::max<int64_t>(4, FoldWatch::kFoldPiece / std::max<int64_t>(1, count) / 4 * 4);
    return in_pieces(rows, piece, [&](int64_t begin, int64_t end) {
      loops_.columns(data + begin * row_step * element_size_, end - begin, row_step, count, centers, reduction_.power,
                     out);
    });
  }
  alignas(64) char tile[kTile * 8];
  for (int64_t r = 0; r < rows; ++r, data += row_step * element_size_) {
    watch.spend(count);
    for (int64_t begin = 0; begin < count; begin += kTile) {
      const int64_t n = std::min(kTile, count - begin);
      load_tile(stored_, data + begin * step * element_size_, step, loop_, tile, n);
      loops_.columns(tile, 1, 0, n, centers == nullptr ? nullptr : centers + begin, reduction_.power, out + begin);
    }
  }
}

// Turns accumulators into elements of the result.
void ReductionPlan::store(Accumulator* accumulators, int64_t count, char* out, int64_t offset, int64_t step) const {
  if (loop_ != DType::kInt64) {
    for (int64_t i = 0; i < count; ++i) {
      double value = accumulators[i].value * reduction_.scale;
      if (reduction_.root == 0.5)
        value = std::sqrt(value);
      else if (reduction_.root != 1)
        value = std::pow(value, reduction_.root);
      accumulators[i].value = value;
    }
  }
  store_tile(loop_ == DType::kInt64 ? DType::kInt64 : DType::kFloat64, accumulators, result_,
             out + offset * static_cast<int64_t>(size_of(result_)), step, count);
}

void ReductionPlan::reduce_rows(const Memory& memory) const {
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, inner_.numel()));
  outer_.parallel_rows(
      grain, [&](const std::array<int64_t, 3>& offset, int64_t count, const std::array<int64_t, 3>& step) {
        FoldWatch watch;
        for (int64_t i = 0; i < count; ++i) {
          Accumulator accumulator = loops_.start;
          const double center = memory.centers == nullptr ? 0 : memory.centers[offset[2] + i * step[2]];
          const char* base = memory.in + (offset[0] + i * step[0]) * element_size_;
          inner_.rows(0, inner_.numel(),
                      [&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& stride) {
                        watch.spend(n);
                        fold_row(base + at[0] * element_size_, n, stride[0], center, &accumulator);
                      });
          store(&accumulator, 1, memory.out, offset[1] + i * step[1], 1);
        }
      });
}

void ReductionPlan::reduce_columns(const Memory& memory) const {
  const int64_t grain = std::max<int64_t>(64, 65536 / std::max<int64_t>(1, inner_.numel()));
  outer_.parallel_rows(
      grain, [&](const std::array<int64_t, 3>& offset, int64_t count, const std::array<int64_t, 3>& step) {
        constexpr int64_t kColumns = 512;
        FoldWatch watch;
        Accumulator accumulators[kColumns];
        double block_centers[kColumns];
        const double* centers = memory.centers;
        for (int64_t begin = 0; begin < count; begin += kColumns) {
          const int64_t n = std::min(kColumns, count - begin);
          std::fill(accumulators, accumulators + n, loops_.start);
          for (int64_t i = 0; centers != nullptr && i < n; ++i)
            block_centers[i] = centers[offset[2] + (begin + i) * step[2]];
          const char* base = memory.in + (offset[0] + begin * step[0]) * element_size_;
          inner_.rows(0, inner_.numel(),
                      [&](const std::array<int64_t, 1>& at, int64_t rows, const std::array<int64_t, 1>& stride) {
                        watch.spend(rows * n);
                        fold_columns(base + at[0] * element_size_, rows, stride[0], n, step[0],
                                     centers == nullptr ? nullptr : block_centers, accumulators);
                      });
          store(accumulators, n, memory.out, offset[1] + begin * step[1], step[1]);
        }
      });
}

// Joins the accumulators of two parts by the reducer's own rule, as if an accumulator were an element. That is right
// except for sums of mapped elements.
void ReductionPlan::join(const Accumulator& part, Accumulator* total) const {
  const bool is_integer = loop_ == DType::kInt64;
  switch (reduction_.reducer) {
    case Reducer::kProduct:
    case Reducer::kMax:
    case Reducer::kMin:
    case Reducer::kMaxAbsolute:
    case Reducer::kMinAbsolute:
    case Reducer::kAny:
    case Reducer::kAll:
      return reduce_loops(reduction_.reducer, is_integer ? DType::kInt64 : DType::kFloat64).row(&part, 1, 0, 0, total);
    default:
      if (is_integer)
        total->integer =
            static_cast<int64_t>(static_cast<uint64_t>(total->integer) + static_cast<uint64_t>(part.integer));
      else
        total->value += part.value;
  }
}

void ReductionPlan::reduce_to_one(const Memory& memory, Accumulator* partial) const {
  const double center = memory.centers == nullptr ? 0 : memory.centers[0];
  std::fill(partial, partial + parts_, loops_.start);
  parallel_run(static_cast<int>(parts_), [&](int part) {
    const int64_t begin = inner_.numel() * part / parts_, end = inner_.numel() * (part + 1) / parts_;
    FoldWatch watch;
    inner_.rows(begin, end, [&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& stride) {
      watch.spend(n);
      fold_row(memory.in + at[0] * element_size_, n, stride[0], center, &partial[part]);
    });
  });
  for (int64_t part = 1; part < parts_; ++part) join(partial[part], &partial[0]);
  store(partial, 1, memory.out, 0, 1);
}

Reduction over_truth(Reduction reduction, DType in) {
  const bool is_sum = reduction.reducer == Reducer::kSum;
  if (reduction.compute != DType::kBool || (!is_sum && reduction.reducer != Reducer::kProduct)) return reduction;
  reduction.reducer = is_sum ? Reducer::kAny : Reducer::kAll;
  reduction.compute = in;
  return reduction;
}

void run_reduction(const Reduction& reduction, const Tensor& in, const Tensor& out) {
  if (out.numel() == 0) return;
  if (out.device().kind == kCUDA) return run_reduction_cuda(reduction, in, out);
  // A sum of integers as float16 is exact enough in float; elements only have to be converted to the category of the
  // compute dtype.
  const DType loop = loop_dtype(reduction.compute);
  if (in.numel() == 0) {
    std::vector<Accumulator> empty(static_cast<size_t>(out.numel()), reduce_loops(reduction.reducer, loop).start);
    if (loop != DType::kInt64) {
      for (Accumulator& a : empty) {
        a.value *= reduction.scale;
        a.value = reduction.root == 1 ? a.value : std::pow(a.value, reduction.root);
      }
    }
    const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
    store_tile(loop == DType::kInt64 ? DType::kInt64 : DType::kFloat64, empty.data(), dense.dtype(), dense.raw_data(),
               1, out.numel());
    if (!dense.is_same(out)) out.copy_from(dense);
    return;
  }
  const ReductionPlan plan(reduction, in, out, thread_budget());
  std::vector<Accumulator> partial(static_cast<size_t>(plan.partial_count()));
  plan.run(in.raw_data(), out.raw_data(), reduction.centers == nullptr ? nullptr : reduction.centers->data<double>(),
           partial.data());
}

}  // namespace tensord::kernels
