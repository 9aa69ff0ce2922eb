// Advanced indexing on the CPU: plans which elements an access touches, then copies elements or rows.
#include "kernels/index/index.h"

#include <cstring>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/cuda/index.h"
#include "kernels/view/view.h"

namespace tensord::kernels {

Tensor nonzero(const Tensor& x) {
  if (x.is_meta()) fail(ErrorCode::kUnimplemented, "nonzero: the result's shape depends on the tensor's data");
  // The host needs the count, so it reads the mask itself.
  if (!x.device().is_host()) return nonzero(x.to(Device{})).to(x.device());
  const Tensor dense = x.contiguous();
  return dispatch_all(x.dtype(), "nonzero", [&]<class T>() {
    const T* from = dense.data<T>();
    int64_t count = 0;
    for (int64_t i = 0; i < dense.numel(); ++i) count += from[i] != T(0);
    Tensor out = Tensor::empty(Dims{count, x.ndim()}, DType::kInt64);
    int64_t* to = out.data<int64_t>();
    const auto ndim = static_cast<size_t>(x.ndim());
    for (int64_t i = 0; i < dense.numel(); ++i) {
      if (i % kPieceElements == 0) check_work_cancelled();
      if constexpr (sizeof(T) == 1) {  // most masks select little
        uint64_t eight = 1;
        if (i % 8 == 0 && i + 8 <= dense.numel()) std::memcpy(&eight, from + i, 8);
        if (eight == 0) {
          i += 7;
          continue;
        }
      }
      if (!(from[i] != T(0))) continue;
      int64_t rest = i;
      for (size_t d = ndim; d-- > 0;) {
        to[d] = rest % x.sizes()[d];
        rest /= x.sizes()[d];
      }
      to += ndim;
    }
    return out;
  });
}

namespace {

using ops::OptionalTensorList;

bool is_mask(DType dtype) { return dtype == DType::kBool || dtype == DType::kUInt8; }

// Indices in host memory are copied to the device of `x`.
OptionalTensorList indices_on_device(const Tensor& x, OptionalTensorList indices) {
  for (auto& index : indices) {
    if (index && !index->is_meta() && index->device().is_host()) index = index->to(x.device());
  }
  return indices;
}

// A 0-d mask selects everything or nothing. The tensor gets a dimension of size 1 for it, and the mask one dimension.
Tensor with_masked_dims(const Tensor& x, OptionalTensorList& indices) {
  Tensor out = x;
  int64_t at = 0;
  for (auto& index : indices) {
    const bool names_dims = index && is_mask(index->dtype());
    if (names_dims && index->ndim() == 0) {
      check(at <= out.ndim(), "too many indices for tensor of dimension ", x.ndim());
      out = unsqueeze(out, at);
      index = unsqueeze(*index, 0);
    }
    at += names_dims ? index->ndim() : 1;
  }
  return out;
}

// One entry per dimension of the indexed tensor; masks became int64 indices.
std::vector<Tensor> expand_masks(const Tensor& x, const OptionalTensorList& indices) {
  std::vector<Tensor> out;
  for (const auto& index : indices) {
    if (!index) {
      out.emplace_back();
      continue;
    }
    const DType dtype = index->dtype();
    if (dtype == DType::kInt64) {
      out.push_back(*index);
      continue;
    }
    check(is_mask(dtype), "tensors used as indices must be long, byte or bool tensors");
    for (int64_t d = 0; d < index->ndim(); ++d) {
      const auto at = static_cast<int64_t>(out.size()) + d;
      const bool fits = at < x.ndim() && index->sizes()[d] == x.sizes()[at];
      if (!fits) {
        fail(ErrorCode::kOutOfRange, "The shape of the mask ", index->sizes(), " at index ", d,
             " does not match the shape of the indexed tensor ", x.sizes(), " at index ", at);
      }
    }
    const Tensor positions = nonzero(*index);
    for (int64_t d = 0; d < index->ndim(); ++d) out.push_back(select(positions, 1, d));
  }
  if (static_cast<int64_t>(out.size()) > x.ndim()) {
    fail(ErrorCode::kOutOfRange, "too many indices for tensor of dimension ", x.ndim(), " (got ", out.size(), ")");
  }
  out.resize(static_cast<size_t>(x.ndim()));
  return out;
}

// The elements that an access touches: for every outer position, every index tuple and every inner position, the
// element at outer + indexed + inner.
struct Access {
  Dims outer_sizes, outer_strides, index_sizes, inner_sizes, inner_strides;
  std::vector<Tensor> indices;  // broadcast to index_sizes
  std::vector<int64_t> dims;    // the dimensions of x that the indices replace
  Dims sizes() const {
    Dims out = outer_sizes;
    for (int64_t size : index_sizes) out.push_back(size);
    for (int64_t size : inner_sizes) out.push_back(size);
    return out;
  }
};

Access plan(const Tensor& x, const OptionalTensorList& given) {
  Access access;
  const std::vector<Tensor> indices = expand_masks(x, given);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    access.dims.push_back(static_cast<int64_t>(d));
    access.indices.push_back(indices[d]);
  }
  try {
    for (const Tensor& index : access.indices) access.index_sizes = broadcast_sizes(access.index_sizes, index.sizes());
  } catch (const Error&) {
    std::string shapes;
    for (const Tensor& index : access.indices) shapes += (shapes.empty() ? "" : ", ") + to_string(index.sizes());
    fail(ErrorCode::kOutOfRange, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
         shapes);
  }
  for (Tensor& index : access.indices) index = expand(index, access.index_sizes);
  // The dimensions of indices with slices between them come first.
  const bool adjacent =
      access.dims.empty() || access.dims.back() - access.dims.front() + 1 == static_cast<int64_t>(access.dims.size());
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (indices[d]) continue;
    const bool is_outer = adjacent && (access.dims.empty() || d < access.dims.front());
    (is_outer ? access.outer_sizes : access.inner_sizes).push_back(x.sizes()[d]);
    (is_outer ? access.outer_strides : access.inner_strides).push_back(x.strides()[d]);
  }
  return access;
}

std::vector<int64_t> indexed_offsets(const Tensor& x, const Access& access) {
  std::vector<int64_t> out(static_cast<size_t>(checked_numel(access.index_sizes)), 0);
  for (size_t k = 0; k < access.indices.size(); ++k) {
    const Tensor index = access.indices[k].contiguous();
    const int64_t* at = index.data<int64_t>();
    const int64_t dim = access.dims[k], size = x.sizes()[dim], stride = x.strides()[dim];
    in_pieces(static_cast<int64_t>(out.size()), kPieceElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i)] += wrap_position(at[i], size, dim) * stride;
    });
  }
  return out;
}

// Calls fn(element of x, element of a row-major tensor of access.sizes()).
template <class T, class Fn>
void for_each_pair(const Tensor& x, const Access& access, T* dense, Fn&& fn) {
  const std::vector<int64_t> outer = element_offsets(access.outer_sizes, access.outer_strides);
  const std::vector<int64_t> inner = element_offsets(access.inner_sizes, access.inner_strides);
  const std::vector<int64_t> indexed = indexed_offsets(x, access);
  T* base = static_cast<T*>(x.raw_data());
  const int64_t rows = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, static_cast<int64_t>(inner.size())));
  for (int64_t o : outer) {
    in_pieces(static_cast<int64_t>(indexed.size()), rows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* row = base + o + indexed[static_cast<size_t>(i)];
        for (int64_t offset : inner) fn(row[offset], *dense++);
      }
    });
  }
}

// Rows whose inner part is dense are copied as blocks.
bool copy_whole_rows(const Tensor& x, const Access& access, const Tensor& out) {
  const int64_t row = checked_numel(access.inner_sizes);
  if (row < 2 || !is_contiguous(access.inner_sizes, access.inner_strides)) return false;
  const std::vector<int64_t> outer = element_offsets(access.outer_sizes, access.outer_strides);
  const std::vector<int64_t> indexed = indexed_offsets(x, access);
  const auto width = static_cast<int64_t>(size_of(x.dtype()));
  const auto* from = static_cast<const char*>(x.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  const auto inner = static_cast<int64_t>(indexed.size()), bytes = row * width;
  parallel_for(static_cast<int64_t>(outer.size()) * inner, std::max<int64_t>(1, 65536 / bytes),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   std::memcpy(to + i * bytes, from + (outer[i / inner] + indexed[i % inner]) * width,
                               static_cast<size_t>(bytes));
                 }
               });
  return true;
}

// The same access for a device's kernels.
IndexedAccess access_on_device(const Tensor& x, const Access& access, const Dims& other_strides) {
  IndexedAccess out;
  out.sizes = access.sizes();
  out.takes_negative = true;
  const auto add = [&](const Dims& strides) {
    for (const int64_t stride : strides) out.x_strides.push_back(stride);
  };
  add(access.outer_strides);
  add(Dims(access.index_sizes.size(), 0));
  add(access.inner_strides);
  out.other_strides = other_strides;
  for (size_t k = 0; k < access.indices.size(); ++k) {
    const int64_t dim = access.dims[k];
    const Tensor index = access.indices[k];
    Dims strides(out.sizes.size(), 0);
    for (size_t d = 0; d < access.index_sizes.size(); ++d) strides[access.outer_sizes.size() + d] = index.strides()[d];
    out.indices.push_back({index, strides, x.sizes()[dim], x.strides()[dim], dim});
  }
  return out;
}

bool has_meta(const Tensor& x, const OptionalTensorList& indices) {
  bool meta = x.is_meta();
  for (const auto& index : indices) meta = meta || (index && index->is_meta());
  return meta;
}

}  // namespace

Tensor index(const Tensor& given, const OptionalTensorList& given_indices) {
  OptionalTensorList indices = indices_on_device(given, given_indices);
  const Tensor x = with_masked_dims(given, indices);
  const Access access = plan(x, indices);
  const Dims sizes = access.sizes();
  if (has_meta(x, indices)) return Tensor::meta(sizes, x.dtype(), x.device());
  const Tensor out = Tensor::empty(sizes, x.dtype(), x.device());
  const int64_t positions = checked_numel(access.index_sizes);
  for (int64_t dim : access.dims) {
    if (x.sizes()[dim] == 0 && positions != 0)
      fail(ErrorCode::kOutOfRange, "index is out of bounds for dimension with size 0");
  }
  if (out.numel() == 0) return out;
  if (x.device().kind == kCUDA) {
    run_indexed_cuda(IndexUse::kRead, x, access_on_device(x, access, out.strides()), out);
    return out;
  }
  if (copy_whole_rows(x, access, out)) return out;
  dispatch_width(x.dtype(), [&]<class T>() {
    for_each_pair(x, access, static_cast<T*>(out.raw_data()), [](T& from, T& to) { to = from; });
  });
  return out;
}

void index_put(const Tensor& given, const OptionalTensorList& given_indices, const Tensor& values, bool accumulate) {
  OptionalTensorList indices = indices_on_device(given, given_indices);
  const Tensor x = with_masked_dims(given, indices);
  check(x.dtype() == values.dtype(), "Index put requires the source and destination dtypes match, got ",
        name_of(x.dtype()), " for the destination and ", name_of(values.dtype()), " for the source.");
  const Access access = plan(x, indices);
  const Dims sizes = access.sizes();
  const Tensor broadcast = [&] {
    try {
      return expand(values, sizes);
    } catch (const Error&) {
      fail(ErrorCode::kInvalidArgument, "shape mismatch: value tensor of shape ", values.sizes(),
           " cannot be broadcast to indexing result of shape ", to_string(sizes));
    }
  }();
  if (has_meta(x, indices) || values.is_meta() || broadcast.numel() == 0) return;
  if (x.device().kind == kCUDA) {
    const Tensor from = (overlap(x, broadcast) == Overlap::kNo ? broadcast : broadcast.clone()).to(x.device());
    return run_indexed_cuda(accumulate ? IndexUse::kAdd : IndexUse::kWrite, x,
                            access_on_device(x, access, from.strides()), from);
  }
  const Tensor dense = overlap(x, broadcast) == Overlap::kNo ? broadcast.contiguous() : broadcast.clone();
  if (accumulate) {
    dispatch_all(x.dtype(), "index_put_", [&]<class T>() {
      for_each_pair(x, access, dense.data<T>(), [](T& to, T& from) { to = static_cast<T>(to + from); });
    });
    return;
  }
  dispatch_width(x.dtype(), [&]<class T>() {
    for_each_pair(x, access, static_cast<T*>(dense.raw_data()), [](T& to, T& from) { to = from; });
  });
}

namespace {

Tensor index_put_in_place(const Tensor& x, const OptionalTensorList& indices, const Tensor& values, bool accumulate) {
  check(x.is_meta() || x.storage()->ensure_writable(), "index_put_: the tensor is read-only");
  index_put(x, indices, values, accumulate);
  return x;
}

Tensor index_put_copy(const Tensor& x, const OptionalTensorList& indices, const Tensor& values, bool accumulate) {
  const Tensor out = x.clone(true);
  index_put(out, indices, values, accumulate);
  return out;
}

std::vector<Tensor> where_nonzero(const Tensor& condition) {
  const Tensor positions = nonzero(condition.ndim() == 0 ? unsqueeze(condition, 0) : condition);
  std::vector<Tensor> out;
  for (int64_t d = 0; d < positions.size(1); ++d) out.push_back(select(positions, 1, d));
  return out;
}

Tensor masked_select_cuda(const Tensor& x, const Tensor& mask) {
  check(mask.dtype() == DType::kBool || mask.dtype() == DType::kUInt8,
        "masked_select: expected BoolTensor or ByteTensor for mask");
  const Dims sizes = broadcast_sizes(x.sizes(), mask.sizes());
  return index(expand(x, sizes), {expand(mask, sizes)});
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check(mask.dtype() == DType::kBool || mask.dtype() == DType::kUInt8,
        "masked_select: expected BoolTensor or ByteTensor for mask");
  const Dims sizes = broadcast_sizes(x.sizes(), mask.sizes());
  const Tensor from = expand(x, sizes).contiguous(), use = expand(mask, sizes).contiguous();
  const auto* const is_used = static_cast<const uint8_t*>(use.raw_data());
  int64_t count = 0;
  in_pieces(use.numel(), kPieceElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) count += is_used[i] != 0 ? 1 : 0;
  });
  const Tensor out = Tensor::empty(Dims{count}, x.dtype());
  dispatch_width(x.dtype(), [&]<class T>() {
    const T* const source = static_cast<const T*>(from.raw_data());
    T* const to = static_cast<T*>(out.raw_data());
    // Has no branch on the mask: an unused element is overwritten by the next one.
    for (int64_t i = 0, taken = 0; taken < count; ++i) {
      if (i % kPieceElements == kPieceElements - 1) check_work_cancelled();
      to[taken] = source[i];
      taken += is_used[i] != 0 ? 1 : 0;
    }
  });
  return out;
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  check(mask.dtype() == DType::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        name_of(mask.dtype()));
  check(x.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got ",
        name_of(x.dtype()), " and ", name_of(source.dtype()));
  const Dims sizes = broadcast_sizes(x.sizes(), mask.sizes());
  const Tensor out = expand(x, sizes).clone();
  const Tensor dense_mask = expand(mask, sizes).contiguous(), from = source.contiguous();
  const bool* use = dense_mask.data<bool>();
  dispatch_width(x.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    const T* next = static_cast<const T*>(from.raw_data());
    int64_t used = 0;
    for (int64_t i = 0; i < out.numel(); ++i) {
      if (!use[i]) continue;
      check(used < from.numel(), "masked_scatter_: expected more elements in source");
      to[i] = next[used++];
    }
  });
  return out;
}

IMPL("aten::index.Tensor", kCPU, index);
IMPL("aten::index_put_", kCPU, index_put_in_place);
IMPL("aten::index_put", kCPU, index_put_copy);
IMPL("aten::nonzero", kCPU, nonzero);
IMPL("aten::nonzero_numpy", kCPU, where_nonzero);
IMPL("aten::argwhere", kCPU, nonzero);
IMPL("aten::where", kCPU, where_nonzero);
IMPL("aten::masked_select", kCPU, masked_select);
IMPL("aten::masked_select", kCUDA, masked_select_cuda);
IMPL("aten::masked_scatter", kCPU, masked_scatter);

}  // namespace
}  // namespace tensord::kernels
