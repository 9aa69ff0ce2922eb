// Reductions over any dimensions, in three ways: one block for each result; one thread for each result, where
// neighboring results read neighboring elements; two passes, where few results have many elements each. Sums are in
// double, those of integers in int64.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

// Repeats kernels/reduce/reduce.h, which nvcc does not read.
enum ReducerCode : int8_t {
  kSum,
  kProduct,
  kMax,
  kMin,
  kSquares,
  kAbsolutes,
  kPowers,
  kMaxAbsolute,
  kMinAbsolute,
  kNonzeros,
  kAny,
  kAll,
};

template <class T>
struct AccumulatorOf {
  using type = double;
};
template <>
struct AccumulatorOf<int64_t> {
  using type = int64_t;
};

template <class A>
struct Bounds {
  static __device__ __forceinline__ A lowest() { return -INFINITY; }
  static __device__ __forceinline__ A highest() { return INFINITY; }
};
template <>
struct Bounds<int64_t> {
  static __device__ __forceinline__ int64_t lowest() { return INT64_MIN; }
  static __device__ __forceinline__ int64_t highest() { return INT64_MAX; }
};
template <class A>
__device__ __forceinline__ A start_of(int8_t reducer) {
  switch (reducer) {
    case kProduct:
    case kAll: return A(1);
    case kMax:
    case kMaxAbsolute: return Bounds<A>::lowest();
    case kMin:
    case kMinAbsolute: return Bounds<A>::highest();
    default: return A(0);
  }
}

// Combines two accumulators.
template <class A>
__device__ __forceinline__ A join_of(int8_t reducer, A a, A b) {
  switch (reducer) {
    case kProduct: return a * b;
    case kMax:
    case kMaxAbsolute: return a != a ? a : b > a || b != b ? b : a;
    case kMin:
    case kMinAbsolute: return a != a ? a : b < a || b != b ? b : a;
    case kAny: return a != A(0) || b != A(0) ? A(1) : A(0);
    case kAll: return a != A(0) && b != A(0) ? A(1) : A(0);
    default: return a + b;
  }
}

// The contribution of one element.
template <class A>
__device__ __forceinline__ A mapped(int8_t reducer, A x, A center, double power) {
  switch (reducer) {
    case kSquares: return (x - center) * (x - center);
    case kAbsolutes:
    case kMaxAbsolute:
    case kMinAbsolute: return x < A(0) ? -x : x == A(0) ? A(0) : x;
    case kPowers: return static_cast<A>(::pow(static_cast<double>(x < A(0) ? -x : x), power));
    case kNonzeros:
    case kAny:
    case kAll: return x != A(0) ? A(1) : A(0);
    default: return x;
  }
}

__device__ __forceinline__ int64_t inner_offset(const ReduceJob& job, int64_t i) {
  int64_t at = 0;
  for (int d = job.inner_dims - 1; d > 0; --d) {
    at += i % job.inner_sizes[d] * job.inner_in[d];
    i /= job.inner_sizes[d];
  }
  return at + i * job.inner_in[0];
}

struct KeptOffsets {
  int64_t in = 0, out = 0, center = 0;
};
__device__ __forceinline__ KeptOffsets kept_offsets(const ReduceJob& job, int64_t i) {
  KeptOffsets at;
  for (int d = job.kept_dims - 1; d >= 0; --d) {
    const int64_t index = i % job.kept_sizes[d];
    i /= job.kept_sizes[d];
    at.in += index * job.kept_in[d];
    at.out += index * job.kept_out[d];
    at.center += index * job.kept_center[d];
  }
  return at;
}

// Accumulates the elements begin, begin + step … of a result.
template <class T, class A>
__device__ __forceinline__ A fold(const ReduceJob& job, const KeptOffsets& at, int64_t begin, int64_t end,
                                  int64_t step) {
  const void* const in = pointer<void>(job.in);
  const double* const centers = pointer<double>(job.centers);
  const A center = centers ? static_cast<A>(centers[at.center]) : A(0);
  A total = start_of<A>(job.reducer);
  for (int64_t i = begin; i < end; i += step) {
    const T x = load_element<T>(in, job.in_dtype, at.in + inner_offset(job, i));
    total = join_of(job.reducer, total, mapped(job.reducer, static_cast<A>(x), center, job.power));
  }
  return total;
}

template <class A>
__device__ __forceinline__ void store_result(const ReduceJob& job, int64_t at, A total) {
  if constexpr (A(1) / A(2) != A(0)) {
    total *= job.scale;
    if (job.root == 0.5)
      total = ::sqrt(total);
    else if (job.root != 1)
      total = ::pow(total, job.root);
  }
  store_element(pointer<void>(job.out), job.out_dtype, at, total);
}

template <class T>
__global__ void reduce_columns_kernel(const __grid_constant__ ReduceJob job) {
  using A = typename AccumulatorOf<T>::type;
  for (int64_t i = thread_index(); i < job.outputs; i += thread_count()) {
    const KeptOffsets at = kept_offsets(job, i);
    store_result(job, at.out, fold<T, A>(job, at, 0, job.inner, 1));
  }
}

// blockIdx.y selects the part of the elements.
template <class T>
__global__ void reduce_rows_kernel(const __grid_constant__ ReduceJob job) {
  using A = typename AccumulatorOf<T>::type;
  SHARED(parts, A[kWarp]);
  const int64_t begin = job.inner * blockIdx.y / job.parts, end = job.inner * (blockIdx.y + 1) / job.parts;
  for (int64_t i = blockIdx.x; i < job.outputs; i += gridDim.x) {
    const KeptOffsets at = kept_offsets(job, i);
    const int8_t reducer = job.reducer;
    const A total = block_reduce(fold<T, A>(job, at, begin + threadIdx.x, end, blockDim.x), parts, start_of<A>(reducer),
                                 [=](A a, A b) { return join_of(reducer, a, b); });
    if (threadIdx.x != 0) continue;
    if (job.parts == 1)
      store_result(job, at.out, total);
    else
      pointer<A>(job.partial)[i * job.parts + blockIdx.y] = total;
  }
}

template <class T>
__global__ void reduce_parts_kernel(const __grid_constant__ ReduceJob job) {
  using A = typename AccumulatorOf<T>::type;
  const A* const partial = pointer<A>(job.partial);
  for (int64_t i = thread_index(); i < job.outputs; i += thread_count()) {
    A total = partial[i * job.parts];
    for (int part = 1; part < job.parts; ++part) total = join_of(job.reducer, total, partial[i * job.parts + part]);
    store_result(job, kept_offsets(job, i).out, total);
  }
}

template <class T>
void launch_reduce(const ReduceJob& job, StreamHandle stream) {
  if (job.by_columns)
    return launch(reduce_columns_kernel<T>, dim3(blocks_for(job.outputs, 128)), dim3(128), 0, stream, job);
  const unsigned threads = job.inner / job.parts >= 1024 ? 256 : job.inner / job.parts > 64 ? 128 : 32;
  launch(reduce_rows_kernel<T>, dim3(blocks_for(job.outputs, 1), static_cast<unsigned>(job.parts)), dim3(threads), 0,
         stream, job);
  if (job.parts > 1) launch(reduce_parts_kernel<T>, dim3(blocks_for(job.outputs, 64)), dim3(64), 0, stream, job);
}

}  // namespace

void reduce(const ReduceJob& job, cuda::StreamHandle stream) {
  switch (job.loop) {
    case kF32: return launch_reduce<float>(job, stream);
    case kF64: return launch_reduce<double>(job, stream);
    default: return launch_reduce<int64_t>(job, stream);
  }
}

}  // namespace tensord::kernels
