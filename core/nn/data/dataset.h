#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::nn {

// Stacks samples along a new first dimension: the default collate function. Throws Error naming the column and the
// difference if the samples' dtypes or shapes differ.
std::vector<Tensor> collate(std::span<const std::vector<Tensor>> samples);

// Samples by index; each is a list of tensors, its columns. Thread-safety: get() and get_batch() may be called from
// several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // REQUIRES: 0 <= index < size().
  virtual std::vector<Tensor> get(int64_t index) const = 0;
  // Returns the collated samples. Datasets with in-memory columns gather them at once. Errors of get() are prefixed
  // with "sample 17: ".
  virtual std::vector<Tensor> get_batch(std::span<const int64_t> indices) const;
  // Calls get() for each index; errors are prefixed likewise. Between two samples it can be cancelled
  // (core/base/cancellation.h).
  std::vector<std::vector<Tensor>> get_samples(std::span<const int64_t> indices) const;
};

// Columns of the same length, indexed along their first dimension.
class TensorDataset final : public Dataset {
 public:
  explicit TensorDataset(std::vector<Tensor> columns);
  int64_t size() const override { return size_; }
  std::vector<Tensor> get(int64_t index) const override;
  std::vector<Tensor> get_batch(std::span<const int64_t> indices) const override;
  const std::vector<Tensor>& columns() const { return columns_; }

 private:
  const std::vector<Tensor> columns_;
  int64_t size_;
};

// A subset of another dataset, which must outlive it.
class SubsetDataset final : public Dataset {
 public:
  SubsetDataset(const Dataset& dataset, std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<Tensor> get(int64_t index) const override;
  std::vector<Tensor> get_batch(std::span<const int64_t> indices) const override;

 private:
  const Dataset& dataset_;
  const std::vector<int64_t> indices_;
};

}  // namespace tensord::nn
