// Attention: a block has some rows of queries and goes through the keys in tiles, with the softmax of what it has seen:
// the largest score, the sum of the exponentials relative to it, and the sum of the values that they weigh.
//
// The gradient computes the weights again, from the logarithms of those sums. A block has some rows of queries and goes
// through the keys, or some keys and goes through the queries, so that each sum is one thread's, in a fixed order.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

using Operand = AttentionOperand;

constexpr int kRows = 32, kKeys = 32, kDepth = 32, kColumns = 64;  // of a tile; kColumns: of values
constexpr int kWarps = 4, kRowsOfWarp = kRows / kWarps, kThreads = kWarps * kWarp;
constexpr int kStep = kDepth + 1;  // between rows in shared memory, so that a column lies in all banks

__device__ __forceinline__ float exp_of_score(float x) { return ::expf(x); }
__device__ __forceinline__ double exp_of_score(double x) { return ::exp(x); }

__device__ __forceinline__ float log_of_sum(float x) { return ::logf(x); }
__device__ __forceinline__ double log_of_sum(double x) { return ::log(x); }

struct HeadOffsets {
  int64_t at[Operand::kCount] = {};
};
// Of one of the heads that are summed for a head of the result.
__device__ __forceinline__ HeadOffsets head_offsets(const AttentionJob& job, int64_t head, int64_t summed = 0) {
  HeadOffsets out;
  for (int d = job.dims - 1; d >= 0; --d) {
    const bool is_own = d < job.result_dims;
    const int64_t rest = is_own ? head : summed, index = rest % job.sizes[d];
    if (is_own)
      head = rest / job.sizes[d];
    else
      summed = rest / job.sizes[d];
    for (int k = 0; k < Operand::kCount; ++k) out.at[k] += index * job.strides[k][d];
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

// The same of more columns, in rows that a warp reads one after another.
template <class In, class T>
__device__ __forceinline__ void load_columns(const AttentionJob& job, int operand, int64_t start, int64_t row,
                                             int64_t rows, int64_t column, int64_t columns, T (*to)[kColumns]) {
  const In* const from = pointer<const In>(job.data[operand]) + start;
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kColumns; i += kThreads) {
    const int64_t r = row + i / kColumns, c = column + i % kColumns;
    const bool is_inside = r < rows && c < columns;
    to[i / kColumns][i % kColumns] =
        is_inside ? widened<T>(from[r * job.rows[operand] + c * job.columns[operand]]) : T(0);
  }
}

// What the mask makes of a score.
template <class In, class T>
__device__ __forceinline__ T masked(const AttentionJob& job, int64_t start, int64_t row, int64_t key, T score) {
  if (job.mask == ScoreMask::kNone) return score;
  const int64_t at = start + row * job.rows[Operand::kMask] + key * job.columns[Operand::kMask];
  if (job.mask == ScoreMask::kAdd) return score + widened<T>(pointer<const In>(job.data[Operand::kMask])[at]);
  const bool hides = pointer<const bool>(job.data[Operand::kMask])[at] == (job.mask == ScoreMask::kFill);
  return hides ? static_cast<T>(job.fill) : score;
}

// Whether the score became a number that does not depend on query and key. Minus infinity gives the weight 0 anyway.
__device__ __forceinline__ bool is_filled(const AttentionJob& job, int64_t start, int64_t row, int64_t key) {
  if (job.mask != ScoreMask::kFill && job.mask != ScoreMask::kFillFalse) return false;
  if (job.fill == INFINITY || job.fill == -INFINITY) return false;
  const int64_t at = start + row * job.rows[Operand::kMask] + key * job.columns[Operand::kMask];
  return pointer<const bool>(job.data[Operand::kMask])[at] == (job.mask == ScoreMask::kFill);
}

// What dropout does to a weight: 0, or division by the chance that it is kept.
struct PhiloxPlace {
  uint64_t seed = 0, offset = 0;
};
__device__ __forceinline__ PhiloxPlace philox_place(const AttentionJob& job) {
  if (job.pass == AttentionPass::kForward) return {job.seed, job.offset};
  const int64_t* const state = pointer<const int64_t>(job.philox);
  return {static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1])};
}
// Of the weights of one key for four rows of queries, the first of them at a multiple of four: a sequence of its own.
template <class T>
__device__ __forceinline__ void drop_four(const AttentionJob& job, const PhiloxPlace& place, int64_t head, int64_t row,
                                          int64_t key, T* weights) {
  const int64_t fours = (job.queries + 3) / 4;
  const int64_t sequence = (head * fours + row / 4) * job.keys + key;
  const Words words = Philox(place.seed, static_cast<uint64_t>(sequence), place.offset).next();
  const double kept = 1 - job.dropout;
  for (int i = 0; i < 4; ++i) {
    const bool is_kept = static_cast<double>(uniform_of(words.at[i])) <= kept;
    weights[i] = is_kept ? weights[i] / static_cast<T>(kept) : T(0);
  }
}
// Numbers of rows are dense, so their offset says which head it is.
__device__ __forceinline__ int64_t head_of(const AttentionJob& job, const HeadOffsets& start) {
  return start.at[Operand::kStatistics] / job.queries;
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

template <class T>
__device__ __forceinline__ void drop_weights(const AttentionJob& job, const PhiloxPlace& place, int64_t head,
                                             int64_t row, int64_t key, RowState<T> (&rows)[kRowsOfWarp]) {
  for (int i = 0; i < kRowsOfWarp; i += 4) {
    T weights[4];
    for (int k = 0; k < 4; ++k) weights[k] = rows[i + k].score;
    drop_four(job, place, head, row + i, key, weights);
    for (int k = 0; k < 4; ++k) rows[i + k].score = weights[k];
  }
}

// log(sum(exp(scores))) of a row: infinity for a hidden row that counts as zeros, so that the gradient's weights are 0.
template <class T>
__device__ __forceinline__ T statistics_of(const AttentionJob& job, const RowState<T>& row) {
  const bool is_hidden = row.top == T(-INFINITY) && row.sum == T(0);
  if (is_hidden) return job.is_safe ? T(INFINITY) : T(NAN);
  return row.top + log_of_sum(row.sum);
}
template <class T>
__device__ __forceinline__ void store_statistics(const AttentionJob& job, const HeadOffsets& start, int64_t begin,
                                                 const RowState<T> (&rows)[kRowsOfWarp]) {
  T* const to = pointer<T>(job.data[Operand::kStatistics]) + start.at[Operand::kStatistics];
  for (int i = 0; i < kRowsOfWarp; ++i) {
    if (begin + i < job.queries) to[begin + i] = statistics_of(job, rows[i]);
  }
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  int64_t* const state = pointer<int64_t>(job.philox);
  state[0] = static_cast<int64_t>(job.seed);
  state[1] = static_cast<int64_t>(job.offset);
}

template <class In, class T>
__device__ __forceinline__ void store_out(const AttentionJob& job, int64_t start, int64_t begin, int64_t column,
                                          const RowState<T> (&rows)[kRowsOfWarp]) {
  In* const to = pointer<In>(job.data[Operand::kOut]) + start;
  for (int i = 0; i < kRowsOfWarp && begin + i < job.queries; ++i) {
    const bool is_hidden = rows[i].top == T(-INFINITY) && rows[i].sum == T(0);
    for (int k = 0; k < kColumns / static_cast<int>(kWarp); ++k) {
      const int64_t c = column + k * static_cast<int>(kWarp);
      if (c >= job.value_depth) continue;
      const T out = is_hidden && job.is_safe ? T(0) : rows[i].out[k] / rows[i].sum;
      to[(begin + i) * job.rows[Operand::kOut] + c * job.columns[Operand::kOut]] = Narrow<In>::of(out);
    }
  }
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
    const PhiloxPlace place = philox_place(job);
    const int64_t begin = unit % blocks * kRows, end = begin + kRows;
    const int64_t seen = job.is_causal && end < job.keys ? end : job.keys;
    RowState<T> rows[kRowsOfWarp];
    for (int64_t tile = 0; tile < seen; tile += kKeys) {
      for (RowState<T>& row : rows) row.score = T(0);
      for (int64_t depth = 0; depth < job.depth; depth += kDepth) {
        __syncthreads();
        load_tile<In>(job, Operand::kQuery, start.at[Operand::kQuery], begin, job.queries, depth, job.depth, queries,
                      static_cast<T>(job.scale));
        load_tile<In>(job, Operand::kKey, start.at[Operand::kKey], tile, job.keys, depth, job.depth, keys, T(1));
        __syncthreads();
        for (int k = 0; k < kDepth; ++k) {
          const T key = keys[lane][k];
#pragma unroll
          for (int i = 0; i < kRowsOfWarp; ++i) rows[i].score += queries[first + i][k] * key;
        }
      }
      __syncthreads();
      load_columns<In>(job, Operand::kValue, start.at[Operand::kValue], tile, job.keys, column, job.value_depth,
                       values);
      for (int i = 0; i < kRowsOfWarp; ++i) {
        const int64_t r = begin + first + i, key = tile + lane;
        const bool is_seen = r < job.queries && key < job.keys && !(job.is_causal && key > r);
        rows[i].score = is_seen ? masked<In>(job, start.at[Operand::kMask], r, key, rows[i].score) : T(-INFINITY);
        update(rows[i]);
      }
      if (job.dropout > 0) drop_weights(job, place, head_of(job, start), begin + first, tile + lane, rows);
      for (int i = 0; i < kRowsOfWarp; ++i) weights[first + i][lane] = rows[i].score;
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
    const bool has_statistics = job.data[Operand::kStatistics].at != nullptr;
    if (has_statistics && lane == 0 && blockIdx.y == 0) store_statistics(job, start, begin + first, rows);
    store_out<In>(job, start.at[Operand::kOut], begin + first, column + lane, rows);
  }
}

// --- the gradient

// The sum of out * gradient of each row: the gradient of a row's scores, weighed, sums to it. A warp for each row.
template <class In, class T>
__global__ void attention_dots_kernel(const __grid_constant__ AttentionJob job) {
  const int64_t lane = threadIdx.x % kWarp, warps = thread_count() / kWarp;
  for (int64_t unit = thread_index() / kWarp; unit < job.heads * job.queries; unit += warps) {
    const HeadOffsets start = head_offsets(job, unit / job.queries);
    const int64_t row = unit % job.queries;
    const auto element = [&](int operand, int64_t column) {
      const int64_t at = start.at[operand] + row * job.rows[operand] + column * job.columns[operand];
      return widened<T>(pointer<const In>(job.data[operand])[at]);
    };
    T sum = 0;
    for (int64_t column = lane; column < job.value_depth; column += kWarp)
      sum += element(Operand::kOut, column) * element(Operand::kGradient, column);
    sum = warp_reduce(sum, [](T a, T b) { return a + b; });
    if (lane == 0) pointer<T>(job.data[Operand::kDots])[start.at[Operand::kDots] + row] = sum;
  }
}

// What dropout multiplies the weights by, for those who compute with all weights in memory.
template <class In, class T>
__global__ void attention_kept_kernel(const __grid_constant__ AttentionJob job) {
  const int64_t fours = (job.queries + 3) / 4;
  const PhiloxPlace place = philox_place(job);
  for (int64_t i = thread_index(); i < job.heads * fours * job.keys; i += thread_count()) {
    const int64_t key = i % job.keys, row = i / job.keys % fours * 4, head = i / job.keys / fours;
    T kept[4] = {T(1), T(1), T(1), T(1)};
    drop_four(job, place, head, row, key, kept);
    for (int64_t r = row; r < row + 4 && r < job.queries; ++r)
      pointer<In>(job.data[Operand::kResult])[(head * job.queries + r) * job.keys + key] =
          Narrow<In>::of(kept[r - row]);
  }
}

template <class T>
struct GradientTiles {
  T (*left)[kStep];
  T (*right)[kStep];
};

// Adds a[row] · b[key] over all columns, a having rows of queries and b keys; lane l has key l of the tile.
template <class In, class T>
__device__ __forceinline__ void multiply_rows(const AttentionJob& job, const HeadOffsets& start, int a, int b,
                                              int64_t row, int64_t key, int64_t columns, T factor,
                                              const GradientTiles<T>& tiles, T (&sums)[kRowsOfWarp]) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), first = static_cast<int>(threadIdx.x / kWarp) * kRowsOfWarp;
  for (int64_t column = 0; column < columns; column += kDepth) {
    __syncthreads();
    load_tile<In>(job, a, start.at[a], row, job.queries, column, columns, tiles.left, factor);
    load_tile<In>(job, b, start.at[b], key, job.keys, column, columns, tiles.right, T(1));
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      const T right = tiles.right[lane][k];
#pragma unroll
      for (int i = 0; i < kRowsOfWarp; ++i) sums[i] += tiles.left[first + i][k] * right;
    }
  }
}

// Of a warp's rows and a lane's key: the weight, or the gradient of the score. 0 outside of the operands.
template <class In, class T>
__device__ __forceinline__ void finish_scores(const AttentionJob& job, const HeadOffsets& start, int64_t begin,
                                              int64_t key, T (&scores)[kRowsOfWarp],
                                              const T (&of_weights)[kRowsOfWarp]) {
  const T* const statistics = pointer<const T>(job.data[Operand::kStatistics]) + start.at[Operand::kStatistics];
  const T* const dots = pointer<const T>(job.data[Operand::kDots]) + start.at[Operand::kDots];
  const bool is_of_value = job.pass == AttentionPass::kOfValue;
  T weights[kRowsOfWarp];
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const int64_t r = begin + i;
    const bool is_inside = r < job.queries && key < job.keys;
    weights[i] = T(0);
    if (!is_inside) continue;
    const bool is_seen = !(job.is_causal && key > r);
    const T score = is_seen ? masked<In>(job, start.at[Operand::kMask], r, key, scores[i]) : T(-INFINITY);
    weights[i] = exp_of_score(score - statistics[r]);
  }
  T kept[kRowsOfWarp];
  for (T& one : kept) one = T(1);
  if (job.dropout > 0) {
    const PhiloxPlace place = philox_place(job);
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; i += 4) drop_four(job, place, head_of(job, start), begin + i, key, kept + i);
  }
  for (int i = 0; i < kRowsOfWarp; ++i) {
    const int64_t r = begin + i;
    if (r >= job.queries || key >= job.keys)
      scores[i] = T(0);
    else if (is_of_value)
      scores[i] = weights[i] * kept[i];
    else if (is_filled(job, start.at[Operand::kMask], r, key))
      scores[i] = T(0);
    else
      scores[i] = weights[i] * (of_weights[i] * kept[i] - dots[r]);
  }
}

// kOfQuery: sum over the keys of (gradient of a score) * key. kOfKey: over the queries, times the query. kOfValue: over
// the queries, weight * gradient. A block has the rows of one tile of the result, and some of its columns.
template <class In, class T>
__global__ void attention_gradient_kernel(const __grid_constant__ AttentionJob job) {
  SHARED(left, T[kRows][kStep]);
  SHARED(right, T[kKeys][kStep]);
  SHARED(others, T[kKeys][kColumns]);
  SHARED(weights, T[kRows][kStep]);
  const GradientTiles<T> tiles{left, right};
  const int lane = static_cast<int>(threadIdx.x % kWarp), first = static_cast<int>(threadIdx.x / kWarp) * kRowsOfWarp;
  const bool is_by_query = job.pass == AttentionPass::kOfQuery, is_of_value = job.pass == AttentionPass::kOfValue;
  const int other = is_by_query ? Operand::kKey : is_of_value ? Operand::kGradient : Operand::kQuery;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kColumns;
  const int64_t width = is_of_value ? job.value_depth : job.depth;
  const int64_t own = is_by_query ? job.queries : job.keys, across = is_by_query ? job.keys : job.queries;
  const int64_t blocks = (own + kRows - 1) / kRows;
  // A row whose keys are all hidden may be NaN, which reaches keys behind it too.
  const bool skips = job.is_causal && (is_by_query || job.is_safe || job.mask == ScoreMask::kNone);
  constexpr int kOwnColumns = kColumns / static_cast<int>(kWarp);
  for (int64_t unit = blockIdx.x; unit < blocks * job.heads; unit += gridDim.x) {
    const int64_t begin = unit % blocks * kRows, end = begin + kRows;
    T sums[kRowsOfWarp][kOwnColumns] = {};
    for (int64_t summed = 0; summed < job.summed_heads; ++summed) {
      const HeadOffsets start = head_offsets(job, unit / blocks, summed);
      const int64_t first_other = is_by_query   ? start.at[Operand::kKey]
                                  : is_of_value ? start.at[Operand::kGradient]
                                                : start.at[Operand::kQuery];
      const int64_t last = skips && is_by_query && end < across ? end : across;
      for (int64_t tile = skips && !is_by_query ? begin : 0; tile < last; tile += kKeys) {
        const int64_t row = is_by_query ? begin : tile, key = is_by_query ? tile : begin;
        T scores[kRowsOfWarp] = {}, of_weights[kRowsOfWarp] = {};
        multiply_rows<In>(job, start, Operand::kQuery, Operand::kKey, row, key, job.depth, static_cast<T>(job.scale),
                          tiles, scores);
        if (!is_of_value)
          multiply_rows<In>(job, start, Operand::kGradient, Operand::kValue, row, key, job.value_depth, T(1), tiles,
                            of_weights);
        finish_scores<In>(job, start, row + first, key + lane, scores, of_weights);
        __syncthreads();
        for (int i = 0; i < kRowsOfWarp; ++i)
          (is_by_query ? weights[first + i][lane] : weights[lane][first + i]) = scores[i];
        load_columns<In>(job, other, first_other, tile, across, column, width, others);
        __syncthreads();
        for (int k = 0; k < kKeys; ++k) {
#pragma unroll
          for (int i = 0; i < kRowsOfWarp; ++i) {
            for (int c = 0; c < kOwnColumns; ++c)
              sums[i][c] += weights[first + i][k] * others[k][lane + c * static_cast<int>(kWarp)];
          }
        }
      }
    }
    const int64_t to = head_offsets(job, unit / blocks).at[Operand::kResult];
    const T factor = is_of_value ? T(1) : static_cast<T>(job.scale);
    for (int i = 0; i < kRowsOfWarp; ++i) {
      for (int c = 0; c < kOwnColumns; ++c) {
        const int64_t r = begin + first + i, at = column + lane + c * static_cast<int>(kWarp);
        if (r < own && at < width)
          pointer<In>(job.data[Operand::kResult])[to + r * width + at] = Narrow<In>::of(sums[i][c] * factor);
      }
    }
  }
}

template <class In, class T>
void run_pass(const AttentionJob& job, StreamHandle stream) {
  const auto run = [&](void (*kernel)(AttentionJob), int64_t blocks, int64_t columns) {
    const dim3 grid(blocks_for(blocks, 1, 0x7fffffff), blocks_for(columns, kColumns));
    launch(kernel, grid, dim3(kThreads), 0, stream, job);
  };
  const auto tiles = [&](int64_t rows) { return (rows + kRows - 1) / kRows * job.heads; };
  switch (job.pass) {
    case AttentionPass::kForward: return run(attention_kernel<In, T>, tiles(job.queries), job.value_depth);
    case AttentionPass::kDots:
      return run(attention_dots_kernel<In, T>, (job.heads * job.queries + kWarps - 1) / kWarps, 1);
    case AttentionPass::kKept:
      return run(attention_kept_kernel<In, T>,
                 (job.heads * ((job.queries + 3) / 4) * job.keys + kThreads - 1) / kThreads, 1);
    case AttentionPass::kOfQuery: return run(attention_gradient_kernel<In, T>, tiles(job.queries), job.depth);
    case AttentionPass::kOfKey: return run(attention_gradient_kernel<In, T>, tiles(job.keys), job.depth);
    case AttentionPass::kOfValue: return run(attention_gradient_kernel<In, T>, tiles(job.keys), job.value_depth);
  }
}

}  // namespace

void attention(const AttentionJob& job, cuda::StreamHandle stream) {
  switch (job.dtype) {
    case kF64: return run_pass<double, double>(job, stream);
    case kF16: return run_pass<Half, float>(job, stream);
    case kBF16: return run_pass<BFloat16, float>(job, stream);
    default: return run_pass<float, float>(job, stream);
  }
}

}  // namespace tensord::kernels
