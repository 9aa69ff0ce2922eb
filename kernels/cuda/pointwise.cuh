// Makes a CUDA kernel of each line of TENSORD_TABLE; included by pointwise_*.cu, which define TENSORD_FILL.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/pointwise_rows.h"
#include "kernels/pointwise/gamma.h"
#include "kernels/pointwise/rounded_steps.h"

namespace tensord::kernels::formula {
namespace {

using namespace cuda;

template <class T>
struct Numeric {
  static __device__ __forceinline__ T number(const PointwiseJob& job, int i) { return static_cast<T>(job.floats[i]); }
  static __device__ __forceinline__ T constant(const PointwiseJob& job, int i) {
    return static_cast<T>(job.float_constants[i]);
  }
};
template <>
struct Numeric<int64_t> {
  static __device__ __forceinline__ int64_t number(const PointwiseJob& job, int i) { return job.ints[i]; }
  static __device__ __forceinline__ int64_t constant(const PointwiseJob& job, int i) { return job.int_constants[i]; }
};

// The operands that one thread reads.
template <class T>
struct PointwiseOperands {
  const void* data[3];
  T constants[3];
  __device__ __forceinline__ explicit PointwiseOperands(const PointwiseJob& job) {
    for (int k = 0; k < 3; ++k) {
      data[k] = pointer<void>(job.data[k]);
      constants[k] = Numeric<T>::constant(job, k);
    }
  }
};

// Records integers that are divided by zero; nothing reads the result then.
template <class T>
__device__ __forceinline__ void check_divisor(const PointwiseJob& job, T& divisor) {
  if (!job.checks_divisor || divisor != T(0)) return;
  note_error(job.errors, KernelError::kDivisionByZero);
  divisor = T(1);
}

template <class T>
TENSORD_DEVICE_CALL void offsets_at(const PointwiseJob& job, int64_t index, int64_t (&offsets)[4]) {
  for (int k = 0; k < 4; ++k) offsets[k] = 0;
  for (int d = job.ndim - 1; d >= 0; --d) {
    const int64_t at = index % job.sizes[d];
    index /= job.sizes[d];
    for (int k = 0; k < 4; ++k) offsets[k] += at * job.strides[k][d];
  }
}

template <class Row, class T>
__global__ void pointwise_kernel(const __grid_constant__ PointwiseJob job) {
  const T p0 = Numeric<T>::number(job, 0), p1 = Numeric<T>::number(job, 1), p2 = Numeric<T>::number(job, 2);
  const PointwiseOperands<T> operands(job);
  void* const out = pointer<void>(job.out);
  for (int64_t index = thread_index(); index < job.numel; index += thread_count()) {
    int64_t offsets[4] = {index, index, index, index};
    if (!job.is_dense) offsets_at<T>(job, index, offsets);
    T values[3];
    for (int k = 0; k < 3; ++k) {
      values[k] =
          operands.data[k] ? load_element<T>(operands.data[k], job.dtypes[k], offsets[k + 1]) : operands.constants[k];
    }
    check_divisor(job, values[1]);
    store_element(out, job.out_dtype, offsets[0], Row::template run<T>(values[0], values[1], values[2], p0, p1, p2));
  }
}

// Dense operands, four elements at a time.
template <class Row, class T>
__global__ void pointwise_packs_kernel(const __grid_constant__ PointwiseJob job) {
  const T p0 = Numeric<T>::number(job, 0), p1 = Numeric<T>::number(job, 1), p2 = Numeric<T>::number(job, 2);
  const PointwiseOperands<T> operands(job);
  void* const out = pointer<void>(job.out);
  using Result = decltype(Row::template run<T>(p0, p0, p0, p0, p1, p2));
  for (int64_t index = thread_index() * 4; index < job.numel; index += thread_count() * 4) {
    Pack<T, 4> values[3];
    const int count = job.numel - index < 4 ? static_cast<int>(job.numel - index) : 4;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < 4; ++i) values[k].at[i] = operands.constants[k];
      if (!operands.data[k]) continue;
      if (count == 4) {
        values[k] = load_four<T>(operands.data[k], job.dtypes[k], index);
      } else {
        for (int i = 0; i < count; ++i) values[k].at[i] = load_element<T>(operands.data[k], job.dtypes[k], index + i);
      }
    }
    Pack<Result, 4> results;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count)
        check_divisor(job, values[1].at[i]);
      else
        values[1].at[i] = T(1);  // unused
      results.at[i] = Row::template run<T>(values[0].at[i], values[1].at[i], values[2].at[i], p0, p1, p2);
    }
    if (count == 4) {
      store_four(out, job.out_dtype, index, results);
    } else {
      for (int i = 0; i < count; ++i) store_element(out, job.out_dtype, index + i, results.at[i]);
    }
  }
}

template <class Row, class T>
void launch_row(const PointwiseJob& job, StreamHandle stream) {
  constexpr int kThreads = 256;
  if (job.is_dense && job.is_aligned) {
    launch(pointwise_packs_kernel<Row, T>, dim3(blocks_for((job.numel + 3) / 4, kThreads)), dim3(kThreads), 0, stream,
           job);
  } else {
    launch(pointwise_kernel<Row, T>, dim3(blocks_for(job.numel, kThreads)), dim3(kThreads), 0, stream, job);
  }
}

struct ArithRows {
  template <class T>
  using Result = T;
  static constexpr bool kFloats = true, kInts = true;
};
using ArithNoBoolRows = ArithRows;
using ArithBoolToIntRows = ArithRows;
struct FloatRows : ArithRows {
  static constexpr bool kInts = false;
};
using FloatOnlyRows = FloatRows;
struct IntegerRows : ArithRows {
  static constexpr bool kFloats = false;
};
using IntegerNoBoolRows = IntegerRows;
struct CompareRows : ArithRows {
  template <class T>
  using Result = bool;
};

template <class Class, class Row>
void add_rows(PointwiseRows& rows) {
  if constexpr (Class::kFloats) {
    rows.f32 = &launch_row<Row, float>;
    rows.f64 = &launch_row<Row, double>;
  }
  if constexpr (Class::kInts) rows.i64 = &launch_row<Row, int64_t>;
}

#define FORMULA(NAME, CLASS, ...)                                                                   \
  struct Row_##NAME {                                                                               \
    template <class T>                                                                              \
    static __device__ __forceinline__ CLASS##Rows::Result<T> run(T a, T b, T c, T p0, T p1, T p2) { \
      static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);                             \
      static_cast<void>(p0), static_cast<void>(p1), static_cast<void>(p2);                          \
      return static_cast<CLASS##Rows::Result<T>>(__VA_ARGS__);                                      \
    }                                                                                               \
  };
#define UNARY(NAME, CLASS, EXPRESSION, GRAD, ...) FORMULA(NAME, CLASS, EXPRESSION)
#define UNARY_NUMBERS(NAME, CLASS, EXPRESSION, GRAD, ...) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B, ...) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY_TENSOR_SCALAR(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY_SHIFT(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY_ALPHA(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) FORMULA(NAME, CLASS, EXPRESSION)
#include TENSORD_TABLE
#undef FORMULA
}  // namespace
}  // namespace tensord::kernels::formula

namespace tensord::kernels {
void TENSORD_FILL(PointwiseRows* rows) {
#define FORMULA(NAME, CLASS, ...) \
  formula::add_rows<formula::CLASS##Rows, formula::Row_##NAME>(rows[static_cast<size_t>(Formula::NAME)]);
#include TENSORD_TABLE
#undef FORMULA
}
}  // namespace tensord::kernels
