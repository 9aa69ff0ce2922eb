#include "core/nn/data/dataset.h"

#include <cstring>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/parallel.h"

namespace tensord::nn {
namespace {

Dims with_first(int64_t count, std::span<const int64_t> rest) {
  Dims sizes{count};
  for (const int64_t size : rest) sizes.push_back(size);
  return sizes;
}

// Copies rows of a column into a new tensor.
Tensor gather(const Tensor& column, std::span<const int64_t> indices) {
  const auto count = static_cast<int64_t>(indices.size());
  const Tensor out = Tensor::empty(with_first(count, column.sizes().span().subspan(1)), column.dtype());
  if (count == 0 || out.numel() == 0) return out;
  const Tensor row = column.as_view(column.sizes().span().subspan(1), column.strides().span().subspan(1), 0);
  const int64_t row_numel = out.numel() / count;
  if (!row.is_contiguous()) {
    for (int64_t i = 0; i < count; ++i) {
      const Tensor from = row.as_view(row.sizes(), row.strides(),
                                      column.offset() + indices[static_cast<size_t>(i)] * column.strides()[0]);
      out.as_view(row.sizes(), contiguous_strides(row.sizes()), i * row_numel).copy_from(from);
    }
    return out;
  }
  const size_t element = size_of(column.dtype()), row_bytes = static_cast<size_t>(row_numel) * element;
  const char* from = static_cast<const char*>(column.raw_data());
  char* to = static_cast<char*>(out.raw_data());
  const int64_t step = column.strides()[0] * static_cast<int64_t>(element);
  parallel_for_cost(count, 20 + static_cast<double>(row_bytes) * 0.1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * row_bytes, from + indices[static_cast<size_t>(i)] * step, row_bytes);
    }
  });
  return out;
}

[[noreturn]] void fail_sample(int64_t index, const Error& error) {
  fail(error.code(), "sample ", index, ": ", error.what());
}

}  // namespace

std::vector<Tensor> collate(std::span<const std::vector<Tensor>> samples) {
  check(!samples.empty(), "collate: there are no samples");
  const std::vector<Tensor>& first = samples.front();
  std::vector<Tensor> batch;
  const auto count = static_cast<int64_t>(samples.size());
  for (size_t c = 0; c < first.size(); ++c) {
    const Tensor out = Tensor::empty(with_first(count, first[c].sizes()), first[c].dtype());
    const Dims strides = contiguous_strides(first[c].sizes());
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<Tensor>& sample = samples[static_cast<size_t>(i)];
      check(sample.size() == first.size(), "each sample of a batch should have the same number of columns, but got ",
            sample.size(), " and ", first.size());
      const Tensor& item = sample[c];
      check(item.sizes() == first[c].sizes() && item.dtype() == first[c].dtype(),
            "stack expects each tensor to be equal size, but column ", c, " is ", describe(first[c]),
            " at entry 0 and ", describe(item), " at entry ", i);
      out.as_view(item.sizes(), strides, i * item.numel()).copy_from(item);
    }
    batch.push_back(out);
  }
  return batch;
}

std::vector<std::vector<Tensor>> Dataset::get_samples(std::span<const int64_t> indices) const {
  std::vector<std::vector<Tensor>> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) {
    check_work_cancelled();
    try {
      samples.push_back(get(index));
    } catch (const Error& error) {
      fail_sample(index, error);
    } catch (const std::exception& error) {
      fail_sample(index, Error(ErrorCode::kInternal, error.what()));
    }
  }
  return samples;
}

std::vector<Tensor> Dataset::get_batch(std::span<const int64_t> indices) const { return collate(get_samples(indices)); }

TensorDataset::TensorDataset(std::vector<Tensor> columns) : columns_(std::move(columns)) {
  check(!columns_.empty(), "TensorDataset: there are no columns");
  for (const Tensor& column : columns_) {
    check(column.defined() && column.ndim() > 0, "TensorDataset: columns need a first dimension");
    check(column.size(0) == columns_.front().size(0), "Size mismatch between tensors: ", describe(columns_.front()),
          " and ", describe(column));
  }
  size_ = columns_.front().size(0);
}

std::vector<Tensor> TensorDataset::get(int64_t index) const {
  check(index >= 0 && index < size_, "index ", index, " is out of range for ", size_, " samples");
  std::vector<Tensor> sample;
  for (const Tensor& column : columns_) {
    sample.push_back(column.as_view(column.sizes().span().subspan(1), column.strides().span().subspan(1),
                                    column.offset() + index * column.strides()[0]));
  }
  return sample;
}

std::vector<Tensor> TensorDataset::get_batch(std::span<const int64_t> indices) const {
  for (const int64_t index : indices) {
    check(index >= 0 && index < size_, "sample ", index, ": out of range for ", size_, " samples");
  }
  std::vector<Tensor> batch;
  for (const Tensor& column : columns_) batch.push_back(gather(column, indices));
  return batch;
}

SubsetDataset::SubsetDataset(const Dataset& dataset, std::vector<int64_t> indices)
    : dataset_(dataset), indices_(std::move(indices)) {
  for (const int64_t index : indices_) {
    check(index >= 0 && index < dataset.size(), "index ", index, " is out of range for ", dataset.size(), " samples");
  }
}
std::vector<Tensor> SubsetDataset::get(int64_t index) const {
  return dataset_.get(indices_.at(static_cast<size_t>(index)));
}
std::vector<Tensor> SubsetDataset::get_batch(std::span<const int64_t> indices) const {
  std::vector<int64_t> inner;
  for (const int64_t index : indices) inner.push_back(indices_.at(static_cast<size_t>(index)));
  return dataset_.get_batch(inner);
}

}  // namespace tensord::nn
