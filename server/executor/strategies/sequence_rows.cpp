#include "server/executor/strategies/sequence_rows.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace tensord::server {
namespace {

Dims sizes_of_rows(const Dims& row, size_t rows) {
  Dims sizes = row;
  if (sizes.empty()) sizes.push_back(1);
  sizes[0] = static_cast<int64_t>(rows);
  return sizes;
}

// One view of the rows if they are adjacent in memory, otherwise an undefined tensor.
Tensor adjacent_rows(std::span<const Tensor* const> rows) {
  const Tensor* first = rows[0];
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor* row = rows[i];
    if (row == nullptr || row->storage().get() != first->storage().get() || !row->is_contiguous()) return {};
    if (row->offset() != first->offset() + static_cast<int64_t>(i) * first->numel()) return {};
  }
  Dims sizes = sizes_of_rows(first->sizes(), rows.size());
  Dims strides = contiguous_strides(sizes);
  return first->as_view(std::move(sizes), std::move(strides), first->offset());
}

// Copies `count` blocks of `size` bytes, `stride` bytes apart in `to`.
void copy_blocks(char* to, size_t stride, const char* from, size_t size, size_t count) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * stride, from + i * size, size);
}

}  // namespace

Tensor stack_rows(std::span<const Tensor* const> rows, uint64_t* copied_bytes) {
  const Tensor& model = **std::find_if(rows.begin(), rows.end(), [](const Tensor* row) { return row != nullptr; });
  if (rows.size() == 1) return model.contiguous();
  if (Tensor view = adjacent_rows(rows); view.defined()) return view;
  Tensor out = Tensor::empty(sizes_of_rows(model.sizes(), rows.size()), model.dtype());
  const size_t size = model.size_bytes();
  if (size == 0) return out;
  char* to = static_cast<char*>(out.raw_data());
  for (const Tensor* row : rows) {
    if (row == nullptr) {
      std::memset(to, 0, size);
    } else {
      std::memcpy(to, row->contiguous().raw_data(), size);
      *copied_bytes += size;
    }
    to += size;
  }
  return out;
}

InferTensor stack_rows(std::span<const InferTensor* const> rows, uint64_t* copied_bytes) {
  const InferTensor& model = **std::find_if(rows.begin(), rows.end(), [](const auto* row) { return row != nullptr; });
  if (rows.size() == 1) return model;
  InferTensor out;
  out.name = model.name;
  out.datatype = model.datatype;
  out.shape = sizes_of_rows(model.shape, rows.size());
  if (model.datatype == DataType::kBytes) {
    for (const InferTensor* row : rows) {
      if (row == nullptr) {
        out.strings.resize(out.strings.size() + model.strings.size());
      } else {
        out.strings.insert(out.strings.end(), row->strings.begin(), row->strings.end());
      }
    }
    return out;
  }
  std::vector<const Tensor*> tensors;
  for (const InferTensor* row : rows) tensors.push_back(row == nullptr ? nullptr : &row->tensor);
  out.tensor = stack_rows(tensors, copied_bytes);
  return out;
}

Tensor stack_right_aligned(std::span<const Tensor* const> rows, int64_t dim, uint64_t* copied_bytes) {
  const auto size_of_dim = [&](const Tensor* row) { return row->size(dim); };
  int64_t longest = 0;
  bool is_even = true;
  for (const Tensor* row : rows) {
    is_even = is_even && size_of_dim(row) == size_of_dim(rows[0]);
    longest = std::max(longest, size_of_dim(row));
  }
  if (is_even) return stack_rows(rows, copied_bytes);
  Dims sizes = sizes_of_rows(rows[0]->sizes(), rows.size());
  sizes[static_cast<size_t>(dim)] = longest;
  Tensor out = Tensor::empty(sizes, rows[0]->dtype());
  if (out.numel() == 0) return out;
  std::memset(out.raw_data(), 0, out.size_bytes());
  size_t inner = size_of(out.dtype());
  for (int64_t i = dim + 1; i < out.ndim(); ++i) inner *= static_cast<size_t>(out.size(i));
  size_t outer = 1;
  for (int64_t i = 1; i < dim; ++i) outer *= static_cast<size_t>(out.size(i));
  const size_t stride = inner * static_cast<size_t>(longest);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor row = rows[i]->contiguous();
    const size_t block = inner * static_cast<size_t>(row.size(dim));
    char* to = static_cast<char*>(out.raw_data()) + i * outer * stride + (stride - block);
    if (block > 0) copy_blocks(to, stride, static_cast<const char*>(row.raw_data()), block, outer);
    *copied_bytes += row.size_bytes();
  }
  return out;
}

Tensor row_of(const Tensor& batch, size_t row) {
  Dims sizes = sizes_of_rows(batch.sizes(), 1);
  const int64_t offset = batch.offset() + static_cast<int64_t>(row) * batch.strides()[0];
  return batch.as_view(std::move(sizes), batch.strides(), offset);
}

InferTensor row_of(const InferTensor& batch, size_t row, size_t rows) {
  if (batch.shape.empty() || batch.shape[0] != static_cast<int64_t>(rows)) {
    fail(ErrorCode::kFailedPrecondition, "output '", batch.name, "' has shape ", to_string(batch.shape),
         ", but its first dimension should be that of the batch, ", rows);
  }
  InferTensor out;
  out.name = batch.name;
  out.datatype = batch.datatype;
  out.shape = sizes_of_rows(batch.shape, 1);
  if (batch.datatype == DataType::kBytes) {
    const size_t count = batch.strings.size() / rows;
    const auto first = batch.strings.begin() + static_cast<ptrdiff_t>(row * count);
    out.strings.assign(first, first + static_cast<ptrdiff_t>(count));
  } else {
    out.tensor = row_of(batch.tensor, row);
  }
  return out;
}

Tensor last_of(const Tensor& tensor, int64_t dim, int64_t size) {
  const int64_t cut = tensor.size(dim) - size;
  if (cut <= 0) return tensor;
  Dims sizes = tensor.sizes();
  sizes[static_cast<size_t>(dim)] = size;
  return tensor.as_view(std::move(sizes), tensor.strides(), tensor.offset() + cut * tensor.stride(dim));
}

InferTensor make_input(const std::string& name, Tensor tensor) {
  InferTensor out;
  out.name = name;
  out.datatype = from_dtype(tensor.dtype());
  out.shape = tensor.sizes();
  out.tensor = std::move(tensor);
  return out;
}

InferTensor make_state(const std::string& name, Tensor tensor) {
  InferTensor out = make_input(name, std::move(tensor));
  out.is_own = out.tensor.storage()->is_writable();
  return out;
}

void append_shape_key(const InferTensor& tensor, std::string& key) {
  key += name_of(tensor.datatype);
  for (const int64_t size : tensor.shape) key += concat(',', size);
  key += ';';
}

}  // namespace tensord::server
