#include "core/tensor/shape.h"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <vector>

#include "core/base/error.h"

namespace tensord {

std::string to_string(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << to_string(dims); }

int64_t checked_numel(std::span<const int64_t> sizes) {
  check(sizes.size() <= kMaxDims, "a tensor of ", sizes.size(), " dimensions is not possible, at most ", kMaxDims);
  int64_t numel = 1;
  bool overflow = false, has_zero = false;
  for (int64_t size : sizes) {
    if (size < 0) {
      fail(ErrorCode::kInvalidArgument, "Trying to create tensor with negative dimension ", size, ": ",
           to_string(sizes));
    }
    has_zero = has_zero || size == 0;
    overflow = __builtin_mul_overflow(numel, size, &numel) || overflow;
  }
  if (has_zero) return 0;
  if (overflow) fail(ErrorCode::kInvalidArgument, "the number of elements of shape ", to_string(sizes), " overflows");
  return numel;
}

namespace {

// In a shape with a 0, the other sizes may have any value. Their strides wrap around and are never used.
int64_t wrapping_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

Dims contiguous_strides(std::span<const int64_t> sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = wrapping_product(strides[i], std::max<int64_t>(sizes[i], 1));
  }
  return strides;
}

Dims channels_last_strides(std::span<const int64_t> sizes) {
  check(sizes.size() == 4 || sizes.size() == 5, "channels_last needs 4 or 5 dimensions, got ", sizes.size());
  Dims strides(sizes.size(), 1);
  int64_t step = std::max<int64_t>(sizes[1], 1);
  for (size_t i = sizes.size(); i-- > 2;) {
    strides[i] = step;
    step = wrapping_product(step, std::max<int64_t>(sizes[i], 1));
  }
  strides[0] = step;
  return strides;
}

namespace {

bool has_order(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> order) {
  int64_t expected = 1;
  for (int64_t dim : order) {
    if (sizes[dim] == 0) return true;
    if (sizes[dim] == 1) continue;
    if (strides[dim] != expected) return false;
    expected = wrapping_product(expected, sizes[dim]);
  }
  return true;
}

}  // namespace

bool is_contiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t expected = 1;
  bool contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    contiguous = contiguous && strides[i] == expected;
    expected = wrapping_product(expected, sizes[i]);
  }
  return contiguous;
}

bool is_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  static constexpr int64_t k4d[] = {1, 3, 2, 0}, k5d[] = {1, 4, 3, 2, 0};
  if (sizes.size() == 4) return has_order(sizes, strides, k4d);
  if (sizes.size() == 5) return has_order(sizes, strides, k5d);
  return false;
}

bool is_non_overlapping_and_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (sizes[a] < 2 || sizes[b] < 2) return sizes[a] >= 2 && sizes[b] < 2;
    return strides[a] < strides[b];
  });
  int64_t expected = 1;
  for (size_t dim : order) {
    if (sizes[dim] == 0) return true;
    if (sizes[dim] == 1) break;
    if (strides[dim] != expected) return false;
    expected = wrapping_product(expected, sizes[dim]);
  }
  return true;
}

Dims broadcast_sizes(std::span<const int64_t> a, std::span<const int64_t> b) {
  const size_t ndim = std::max(a.size(), b.size());
  Dims out(ndim, 1);
  for (size_t i = 0; i < ndim; ++i) {
    const int64_t sa = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t sb = i < b.size() ? b[b.size() - 1 - i] : 1;
    check(sa == sb || sa == 1 || sb == 1, "The size of tensor a (", sa, ") must match the size of tensor b (", sb,
          ") at non-singleton dimension ", ndim - 1 - i);
    out[ndim - 1 - i] = sa == 1 ? sb : sa;
  }
  return out;
}

Dims broadcast_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> to) {
  Dims out(to.size(), 0);
  const size_t offset = to.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    out[offset + i] = sizes[i] == 1 && to[offset + i] != 1 ? 0 : strides[i];
  }
  return out;
}

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t range = std::max<int64_t>(ndim, 1);
  if (dim < -range || dim >= range) {
    fail(ErrorCode::kOutOfRange, "Dimension out of range (expected to be in range of [", -range, ", ", range - 1,
         "], but got ", dim, ")");
  }
  return dim < 0 ? dim + range : dim;
}

int64_t axis_of(int64_t dim, int64_t ndim) {
  if (ndim == 0) fail(ErrorCode::kOutOfRange, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, ndim);
}

Dims infer_view_sizes(std::span<const int64_t> requested, int64_t numel) {
  const auto invalid = [&] {
    fail(ErrorCode::kInvalidArgument, "shape '", to_string(requested), "' is invalid for input of size ", numel);
  };
  Dims sizes(requested);
  int64_t known = 1;
  std::ptrdiff_t unknown = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      check(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<std::ptrdiff_t>(i);
      continue;
    }
    check(sizes[i] >= 0, "invalid shape dimension ", sizes[i]);
    if (__builtin_mul_overflow(known, sizes[i], &known)) invalid();
  }
  if (unknown >= 0) {
    if (known == 0) {
      fail(ErrorCode::kInvalidArgument, "cannot reshape tensor of ", numel, " elements into shape ",
           to_string(requested), " because the unspecified dimension size -1 can be any value and is ambiguous");
    }
    if (numel % known != 0) invalid();
    sizes[unknown] = numel / known;
  } else if (known != numel) {
    invalid();
  }
  return sizes;
}

Dims view_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> new_sizes,
                  bool* possible) {
  *possible = true;
  const int64_t numel = checked_numel(sizes);
  if (numel == 0)
    return sizes.size() == new_sizes.size() && std::equal(sizes.begin(), sizes.end(), new_sizes.begin())
               ? Dims(strides)
               : contiguous_strides(new_sizes);
  Dims out(new_sizes.size(), 1);
  // Walks both shapes from the back. Each contiguous chunk of old dimensions has to be covered by whole new dimensions.
  auto view_dim = static_cast<std::ptrdiff_t>(new_sizes.size()) - 1;
  int64_t chunk_base_stride = sizes.empty() ? 1 : strides.back();
  int64_t tensor_numel = 1, view_numel = 1;
  for (auto dim = static_cast<std::ptrdiff_t>(sizes.size()) - 1; dim >= 0; --dim) {
    tensor_numel *= sizes[dim];
    const bool chunk_ends = dim == 0 || (sizes[dim - 1] != 1 && strides[dim - 1] != tensor_numel * chunk_base_stride);
    if (!chunk_ends) continue;
    while (view_dim >= 0 && (view_numel < tensor_numel || new_sizes[view_dim] == 1)) {
      out[view_dim] = view_numel * chunk_base_stride;
      view_numel *= new_sizes[view_dim];
      --view_dim;
    }
    if (view_numel != tensor_numel) {
      *possible = false;
      return {};
    }
    if (dim > 0) {
      chunk_base_stride = strides[dim - 1];
      tensor_numel = 1;
      view_numel = 1;
    }
  }
  return out;
}

}  // namespace tensord
