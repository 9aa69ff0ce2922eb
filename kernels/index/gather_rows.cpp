#include "kernels/index/gather_rows.h"

#include <cstring>

#include "core/base/error.h"
#include "core/base/parallel.h"

namespace tensord::kernels {
namespace {

// The table is larger than the caches, so rows are prefetched.
constexpr int64_t kAhead = 8, kMaxPrefetched = 512;

template <class I>
void check_range(const I* indices, int64_t count, int64_t rows) {
  bool is_good = true;
  for (int64_t i = 0; i < count; ++i) is_good = is_good && indices[i] >= 0 && indices[i] < rows;
  if (!is_good) fail(ErrorCode::kOutOfRange, "index out of range in self");
}

template <class I>
void copy_rows(const RowGather& g, const char* table, const I* indices, int64_t begin, int64_t end, char* out) {
  for (int64_t i = begin; i < end; ++i) {
    if (i + kAhead < end) {
      const char* next = table + static_cast<int64_t>(indices[i + kAhead]) * g.row_stride;
      for (int64_t at = 0; at < std::min(g.row_bytes, kMaxPrefetched); at += 64) __builtin_prefetch(next + at);
    }
    std::memcpy(out + i * g.row_bytes, table + static_cast<int64_t>(indices[i]) * g.row_stride,
                static_cast<size_t>(g.row_bytes));
  }
}

// Rows of one element.
template <class W, class I>
void copy_elements(const RowGather& g, const char* table, const I* indices, int64_t begin, int64_t end, char* out) {
  for (int64_t i = begin; i < end; ++i) {
    W element;
    std::memcpy(&element, table + static_cast<int64_t>(indices[i]) * g.row_stride, sizeof(W));
    std::memcpy(out + i * static_cast<int64_t>(sizeof(W)), &element, sizeof(W));
  }
}

template <class I>
void gather(const RowGather& g, const char* table, const I* indices, char* out) {
  check_range(indices, g.count, g.table_rows);
  if (g.row_bytes == 0) return;
  const auto copy = g.row_bytes == 4   ? copy_elements<uint32_t, I>
                    : g.row_bytes == 8 ? copy_elements<uint64_t, I>
                                       : copy_rows<I>;
  const double row_ns = g.row_bytes <= 8 ? 0.5 : 6 + 0.05 * static_cast<double>(g.row_bytes);
  parallel_for_cost(g.outer * g.count, row_ns, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t outer = begin / g.count, first = begin % g.count, last = std::min(g.count, first + end - begin);
      copy(g, table + outer * g.outer_stride, indices, first, last, out + outer * g.count * g.row_bytes);
      begin += last - first;
    }
  });
}

}  // namespace

void RowGather::run(const void* table, DType index, const void* indices, void* out) const {
  const auto* from = static_cast<const char*>(table);
  if (index == DType::kInt64)
    gather(*this, from, static_cast<const int64_t*>(indices), static_cast<char*>(out));
  else
    gather(*this, from, static_cast<const int32_t*>(indices), static_cast<char*>(out));
}

RowGather RowGather::of(const Tensor& x, int64_t dim, int64_t count) {
  RowGather g;
  const auto size = static_cast<int64_t>(size_of(x.dtype()));
  g.row_bytes = size;
  for (int64_t d = dim + 1; d < x.ndim(); ++d) g.row_bytes *= x.sizes()[d];
  for (int64_t d = 0; d < dim; ++d) g.outer *= x.sizes()[d];
  g.outer_stride = dim > 0 ? x.strides()[dim - 1] * size : 0;
  g.table_rows = x.sizes()[dim];
  g.row_stride = x.strides()[dim] * size;
  g.count = count;
  return g;
}

// The dimensions after `dim` are row-major, and those before it form one dimension with one stride.
bool RowGather::rows_are_dense(const Tensor& x, int64_t dim) {
  int64_t expected = 1;
  for (int64_t d = x.ndim() - 1; d > dim; --d) {
    if (x.sizes()[d] != 1 && x.strides()[d] != expected) return false;
    expected *= x.sizes()[d];
  }
  for (int64_t d = 0; d + 1 < dim; ++d) {
    if (x.strides()[d] != x.strides()[d + 1] * x.sizes()[d + 1]) return false;
  }
  return true;
}

}  // namespace tensord::kernels
