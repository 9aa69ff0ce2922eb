#pragma once

#include <cstdint>

#include "core/tensor/loops.h"
#include "core/tensor/tensor.h"

// Reductions over any set of dimensions. A reducer maps every element to a number and
// combines the numbers; floating point sums of short blocks run in the compute type and
// are added in double, integers run in int64.
namespace tensord::kernels {

enum class Reducer : uint8_t {
  kSum,        // sum of x
  kProduct,    // product of x
  kMax,        // largest x; NaN wins
  kMin,        // smallest x; NaN wins
  kSquares,    // sum of (x - center)^2, center of each output
  kAbsolutes,  // sum of |x|
  kPowers,     // sum of |x|^p
  kMaxAbsolute,
  kMinAbsolute,
  kNonzeros,  // count of x != 0
  kAny,       // 1 when some x != 0
  kAll,       // 1 when every x != 0
  kCount
};

// An accumulator: `value` for floating point elements, `integer` for the others.
union Accumulator {
  double value;
  int64_t integer;
};

// One dense row or a block of columns of the compute type (float, double or int64).
struct ReduceLoops {
  // Folds a dense row into one accumulator.
  void (*row)(const void* in, int64_t count, double center, double power, Accumulator* out);
  // Folds `rows` rows, `row_step` elements apart, into `count` accumulators; centers may be null.
  void (*columns)(const void* in, int64_t rows, int64_t row_step, int64_t count, const double* centers, double power,
                  Accumulator* out);
  Accumulator start;
};
const ReduceLoops& reduce_loops(Reducer reducer, DType loop);

// Reduces `in` over the dimensions marked in `is_reduced` and stores the accumulators, converted
// by `finish` (when floating), into `out`, whose sizes have 1 where reduced. `centers` (for
// kSquares) is a float64 tensor of out's sizes, row-major, or null.
struct Reduction {
  Reducer reducer = Reducer::kSum;
  double power = 0;
  const Tensor* centers = nullptr;
  // Applied to each floating point result: result * scale, then pow(result, root) unless root is 1.
  double scale = 1, root = 1;
  DType compute = DType::kFloat32;  // elements are converted to this first
};
// Elements of `in` that become bool first are only asked whether they are zero: the sum is `any`, the product `all`.
Reduction over_truth(Reduction reduction, DType in);
void run_reduction(const Reduction& reduction, const Tensor& in, const Tensor& out);
void run_reduction_cuda(const Reduction& reduction, const Tensor& in, const Tensor& out);

// A reduction with its loops laid out for known shapes. Immutable; runs without allocation.
class ReductionPlan {
 public:
  // Tensors may be meta; neither is empty. `threads` may work on one output.
  ReductionPlan(const Reduction& reduction, const Tensor& in, const Tensor& out, int threads);
  // `partial` has room for partial_count accumulators; `centers` are those of kSquares.
  void run(const void* in, void* out, const double* centers, Accumulator* partial) const;
  int64_t partial_count() const { return is_one_ ? parts_ : 0; }

 private:
  struct Memory;
  void reduce_rows(const Memory& memory) const;
  void reduce_columns(const Memory& memory) const;
  void reduce_to_one(const Memory& memory, Accumulator* partial) const;
  void fold_row(const char* data, int64_t count, int64_t step, double center, Accumulator* out) const;
  void fold_columns(const char* data, int64_t rows, int64_t row_step, int64_t count, int64_t step,
                    const double* centers, Accumulator* out) const;
  void store(Accumulator* accumulators, int64_t count, char* out, int64_t offset, int64_t step) const;
  void join(const Accumulator& part, Accumulator* total) const;

  Reduction reduction_;
  DType stored_, loop_, result_;
  int64_t element_size_;
  const ReduceLoops& loops_;
  LoopNest<1> inner_;  // over what is reduced
  LoopNest<3> outer_;  // over what is kept: in, out, centers
  bool is_one_, by_columns_;
  int64_t parts_;
};

}  // namespace tensord::kernels
