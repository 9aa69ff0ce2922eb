// Attention: a block has some rows of queries and goes through the keys in tiles, with the softmax of what it has seen:
// the largest score, the sum of the exponentials relative to it, and the sum of the values that they weigh.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

enum Operand { kQuery, kKey, kValue, kMask, kOut };

constexpr int kRows = 32, kKeys = 32, kDepth = 32, kColumns = 64;  // of a tile; kColumns: of values
constexpr int kWarps = 4, kRowsOfWarp = kRows / kWarps, kThreads = kWarps * kWarp;
constexpr int kStep = kDepth + 1;  // between rows in shared memory, so that a column lies in all banks

__device__ __forceinline__ float exp_of_score(float x) { return ::expf(x); }
__device__ __forceinline__ double exp_of_score(double x) { return ::exp(x); }

struct HeadOffsets {
  int64_t at[5] = {};
};
__device__ __forceinline__ HeadOffsets head_offsets(const AttentionJob& job, int64_t head) {
  HeadOffsets out;
  for (int d = job.dims - 1; d >= 0; --d) {
    const int64_t index = head % job.sizes[d];
    head /= job.sizes[d];
    for (int k = 0; k < 5; ++k) out.at[k] += index * job.strides[k][d];
  }
  return out;
}

// A tile of rows of one operand in shared memory, 0 outside of it.
template <class In, class T>
__device__ __forceinline__ void load_tile(const AttentionJob& job, int operand, int64_t start, int64_t row,
                                          int64_t rows, int64_t column, int64_t columns, T (*to)[kStep], T factor) {
  const In* const from = pointer<const In>(job.data[operand]) + start;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kDepth; i += kThreads) {
    const int r = i / kDepth, c = i % kDepth;
    const bool is_inside = row + r < rows && column + c < columns;
    to[r][c] = is_inside
                   ? widened<T>(from[(row + r) * job.rows[operand] + (column + c) * job.columns[operand]]) * factor
                   : T(0);
  }
}

// What the mask makes of a score.
template <class In, class T>
__device__ __forceinline__ T masked(const AttentionJob& job, int64_t start, int64_t row, int64_t key, T score) {
  if (job.mask == ScoreMask::kNone) return score;
  const int64_t at = start + row * job.rows[kMask] + key * job.columns[kMask];
  if (job.mask == ScoreMask::kAdd) return score + widened<T>(pointer<const In>(job.data[kMask])[at]);
  const bool hides = pointer<const bool>(job.data[kMask])[at] == (job.mask == ScoreMask::kFill);
  return hides ? static_cast<T>(job.fill) : score;
}

// A warp's rows: lane l has the score of key l of the tile, and the values' columns l and l + 32.
template <class T>
struct RowState {
  T top = T(-INFINITY), sum = T(0), score = T(0), out[kColumns / kWarp] = {};
};

// Takes a tile's scores into the softmax; the weights of its keys become the scores.
template <class T>
__device__ __forceinline__ void update(RowState<T>& row) {
  const T most = warp_reduce(row.score, [](T a, T b) { return b > a ? b : a; });
  const T top = most > row.top ? most : row.top;
  const T shift = top == T(-INFINITY) ? T(0) : top;  // nothing was seen yet
  const T kept = exp_of_score(row.top - shift);
  row.score = exp_of_score(row.score - shift);
  row.sum = row.sum * kept + warp_reduce(row.score, [](T a, T b) { return a + b; });
  row.top = top;
  for (T& out : row.out) out *= kept;
}

template <class In, class T>
__global__ void attention_kernel(const __grid_constant__ AttentionJob job) {
  SHARED(queries, T[kRows][kStep]);
  SHARED(keys, T[kKeys][kStep]);
  SHARED(values, T[kKeys][kColumns]);
  SHARED(weights, T[kRows][kStep]);
  const int lane = static_cast<int>(threadIdx.x % kWarp), first = static_cast<int>(threadIdx.x / kWarp) * kRowsOfWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kColumns, blocks = (job.queries + kRows - 1) / kRows;
  for (int64_t unit = blockIdx.x; unit < blocks * job.heads; unit += gridDim.x) {
    const HeadOffsets start = head_offsets(job, unit / blocks);
    const int64_t begin = unit % blocks * kRows, end = begin + kRows;
    const int64_t seen = job.is_causal && end < job.keys ? end : job.keys;
    RowState<T> rows[kRowsOfWarp];
    for (int64_t tile = 0; tile < seen; tile += kKeys) {
      for (RowState<T>& row : rows) row.score = T(0);
      for (int64_t depth = 0; depth < job.depth; depth += kDepth) {
        __syncthreads();
        load_tile<In>(job, kQuery, start.at[kQuery], begin, job.queries, depth, job.depth, queries,
                      static_cast<T>(job.scale));
        load_tile<In>(job, kKey, start.at[kKey], tile, job.keys, depth, job.depth, keys, T(1));
        __syncthreads();
        for (int k = 0; k < kDepth; ++k) {
          const T key = keys[lane][k];
#pragma unroll
          for (int i = 0; i < kRowsOfWarp; ++i) rows[i].score += queries[first + i][k] * key;
        }
      }
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kKeys * kColumns; i += kThreads) {
        const int64_t k = tile + i / kColumns, c = column + i % kColumns;
        const int64_t at = start.at[kValue] + k * job.rows[kValue] + c * job.columns[kValue];
        const bool is_inside = k < job.keys && c < job.value_depth;
        values[i / kColumns][i % kColumns] = is_inside ? widened<T>(pointer<const In>(job.data[kValue])[at]) : T(0);
      }
      for (int i = 0; i < kRowsOfWarp; ++i) {
        const int64_t r = begin + first + i, key = tile + lane;
        const bool is_seen = r < job.queries && key < job.keys && !(job.is_causal && key > r);
        rows[i].score = is_seen ? masked<In>(job, start.at[kMask], r, key, rows[i].score) : T(-INFINITY);
        update(rows[i]);
        weights[first + i][lane] = rows[i].score;
      }
      __syncthreads();
      const int64_t count = job.keys - tile < kKeys ? job.keys - tile : kKeys;
      for (int k = 0; k < count; ++k) {
#pragma unroll
        for (int i = 0; i < kRowsOfWarp; ++i) {
          for (int c = 0; c < kColumns / static_cast<int>(kWarp); ++c)
            rows[i].out[c] += weights[first + i][k] * values[k][lane + c * static_cast<int>(kWarp)];
        }
      }
    }
    __syncthreads();
    for (int i = 0; i < kRowsOfWarp; ++i) {
      const int64_t r = begin + first + i;
      const bool is_hidden = rows[i].top == T(-INFINITY) && rows[i].sum == T(0);
      for (int c = 0; c < kColumns / static_cast<int>(kWarp); ++c) {
        const int64_t to = column + lane + c * static_cast<int>(kWarp);
        if (r >= job.queries || to >= job.value_depth) continue;
        const T out = is_hidden && job.is_safe ? T(0) : rows[i].out[c] / rows[i].sum;
        pointer<In>(job.data[kOut])[start.at[kOut] + r * job.rows[kOut] + to * job.columns[kOut]] = Narrow<In>::of(out);
      }
    }
  }
}

}  // namespace

void attention(const AttentionJob& job, cuda::StreamHandle stream) {
  const int64_t blocks = (job.queries + kRows - 1) / kRows * job.heads;
  const dim3 grid(blocks_for(blocks, 1, 0x7fffffff), blocks_for(job.value_depth, kColumns));
  const auto run = [&](void (*kernel)(AttentionJob)) { launch(kernel, grid, dim3(kThreads), 0, stream, job); };
  switch (job.dtype) {
    case kF64: return run(attention_kernel<double, double>);
    case kF16: return run(attention_kernel<Half, float>);
    case kBF16: return run(attention_kernel<BFloat16, float>);
    default: return run(attention_kernel<float, float>);
  }
}

}  // namespace tensord::kernels
