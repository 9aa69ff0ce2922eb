// Makes a CUDA kernel of each line of TENSORD_TABLE; included by pointwise_*_cuda.cu, which
// define TENSORD_FILL.
#include "core/tensor/half.h"
#include "kernels/pointwise/pointwise_cuda.h"
#include "kernels/pointwise/gamma.h"
#include "kernels/pointwise/rounded_steps.h"

namespace tensord::kernels::formula {
namespace {

template <class T>
__device__ __forceinline__ T load(const void* data, int8_t dtype, int64_t i) {
  switch (dtype) {
    case 0: return static_cast<T>(static_cast<const uint8_t*>(data)[i]);
    case 1: return static_cast<T>(static_cast<const int8_t*>(data)[i]);
    case 2: return static_cast<T>(static_cast<const int16_t*>(data)[i]);
    case 3: return static_cast<T>(static_cast<const int32_t*>(data)[i]);
    case 4: return static_cast<T>(static_cast<const int64_t*>(data)[i]);
    case 5: return static_cast<T>(static_cast<float>(static_cast<const Half*>(data)[i]));
    case 6: return static_cast<T>(static_cast<const float*>(data)[i]);
    case 7: return static_cast<T>(static_cast<const double*>(data)[i]);
    case 11: return static_cast<T>(static_cast<const bool*>(data)[i]);
    default: return static_cast<T>(static_cast<float>(static_cast<const BFloat16*>(data)[i]));
  }
}

template <class T>
__device__ __forceinline__ void store(void* data, int8_t dtype, int64_t i, T value) {
  switch (dtype) {
    case 0: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(static_cast<int64_t>(value)); break;
    case 1: static_cast<int8_t*>(data)[i] = static_cast<int8_t>(static_cast<int64_t>(value)); break;
    case 2: static_cast<int16_t*>(data)[i] = static_cast<int16_t>(static_cast<int64_t>(value)); break;
    case 3: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(static_cast<int64_t>(value)); break;
    case 4: static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value); break;
    case 5: static_cast<Half*>(data)[i] = Half(static_cast<float>(value)); break;
    case 6: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case 7: static_cast<double*>(data)[i] = static_cast<double>(value); break;
    case 11: static_cast<bool*>(data)[i] = value != T(0); break;
    default: static_cast<BFloat16*>(data)[i] = BFloat16(static_cast<float>(value)); break;
  }
}

template <class T>
struct Numeric {
  static __device__ __forceinline__ T number(const CudaPointwise& job, int i) { return static_cast<T>(job.floats[i]); }
  static __device__ __forceinline__ T constant(const CudaPointwise& job, int i) {
    return static_cast<T>(job.float_constants[i]);
  }
};
template <>
struct Numeric<int64_t> {
  static __device__ __forceinline__ int64_t number(const CudaPointwise& job, int i) { return job.ints[i]; }
  static __device__ __forceinline__ int64_t constant(const CudaPointwise& job, int i) { return job.int_constants[i]; }
};

template <class Row, class T>
__global__ void pointwise_kernel(const __grid_constant__ CudaPointwise job) {
  const T p0 = Numeric<T>::number(job, 0), p1 = Numeric<T>::number(job, 1), p2 = Numeric<T>::number(job, 2);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < job.numel;
       index += stride) {
    int64_t offsets[4] = {index, index, index, index};
    if (!job.is_dense) {
      offsets[0] = offsets[1] = offsets[2] = offsets[3] = 0;
      int64_t rest = index;
      for (int d = job.ndim - 1; d >= 0; --d) {
        const int64_t at = rest % job.sizes[d];
        rest /= job.sizes[d];
        for (int k = 0; k < 4; ++k) offsets[k] += at * job.strides[k][d];
      }
    }
    T values[3];
    for (int k = 0; k < 3; ++k) {
      values[k] =
          job.data[k] != nullptr ? load<T>(job.data[k], job.dtypes[k], offsets[k + 1]) : Numeric<T>::constant(job, k);
    }
    store(job.out, job.out_dtype, offsets[0], Row::template run<T>(values[0], values[1], values[2], p0, p1, p2));
  }
}

template <class Row, class T>
void launch(const CudaPointwise& job, cudaStream_t stream) {
  constexpr int kThreads = 256;
  const int64_t wanted = (job.numel + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < 65535 ? wanted : 65535);
  pointwise_kernel<Row, T><<<blocks, kThreads, 0, stream>>>(job);
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
struct CompareRows : ArithRows {
  template <class T>
  using Result = bool;
};

template <class Class, class Row>
void add_rows(CudaRows& rows) {
  if constexpr (Class::kFloats) {
    rows.f32 = &launch<Row, float>;
    rows.f64 = &launch<Row, double>;
  }
  if constexpr (Class::kInts) rows.i64 = &launch<Row, int64_t>;
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
void TENSORD_FILL(CudaRows* rows) {
#define FORMULA(NAME, CLASS, ...) \
  formula::add_rows<formula::CLASS##Rows, formula::Row_##NAME>(rows[static_cast<size_t>(Formula::NAME)]);
#include TENSORD_TABLE
#undef FORMULA
}
}  // namespace tensord::kernels
