// embedding_bag: sums, means or maxima over bags of table rows. Schemas and shapes.
#include "kernels/embedding/embedding_bag.h"

#include "core/base/error.h"
#include "core/ops/op.h"
#include "kernels/embedding/embedding_bag_gradient.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using OptionalTensor = std::optional<Tensor>;

void check_index_dtype(const Tensor& tensor, const char* name) {
  check(tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kInt32, "Expected tensor for argument #1 '", name,
        "' to have one of the following scalar types: Long, Int; but got ", name_of(tensor.dtype()),
        " instead (while checking arguments for embedding_bag)");
  check(tensor.ndim() == 1, "embedding_bag: ", name, " must have 1 dimension, got ", tensor.ndim());
}

void check_bags(const Tensor& table, const Tensor& indices, const Tensor& offsets, int64_t mode,
                const OptionalTensor& weights, bool has_last_offset, std::optional<int64_t> padding) {
  check(table.ndim() == 2, "embedding_bag: weight must have 2 dimensions, got ", table.ndim());
  if (!is_floating(table.dtype())) fail_dtype("embedding_bag", table.dtype());
  check_index_dtype(indices, "indices");
  check_index_dtype(offsets, "offsets");
  check(mode >= 0 && mode <= 2, "embedding_bag: unknown mode ", mode);
  check(!has_last_offset || offsets.numel() >= 1, "include_last_offset: number of offset should be at least 1");
  if (weights) {
    check(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
    check(weights->dtype() == table.dtype(),
          "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
          "'per_sample_weights'; but type ",
          name_of(table.dtype()), " does not equal ", name_of(weights->dtype()),
          " (while checking arguments for embedding_bag)");
    check(weights->ndim() == 1 && weights->numel() == indices.numel(),
          "Expected per_sample_weights.value().numel() == indices.numel() to be true, but got ", weights->numel(),
          " and ", indices.numel());
  }
  const int64_t rows = table.sizes()[0];
  check(!padding || (*padding >= -rows && *padding < rows), "padding_idx must be within the number of embeddings, ",
        -rows, " through ", rows - 1, ", but got ", padding.value_or(0));
}

// The results: the bags, the bag of each index, the size of each bag, and for maxima the rows that they came from.
std::vector<TensorMeta> bag_metas(const Tensor& table, const Tensor& indices, const Tensor& offsets, int64_t mode,
                                  const OptionalTensor& weights, bool has_last_offset, std::optional<int64_t> padding) {
  check_bags(table, indices, offsets, mode, weights, has_last_offset, padding);
  const auto kind = static_cast<BagMode>(mode);
  const bool is_sum = kind == BagMode::kSum;
  // For sums that its fast loop covers, PyTorch leaves empty what only the gradient needs.
  const bool is_fast = (table.dtype() == DType::kFloat32 || table.dtype() == DType::kFloat16) &&
                       table.strides()[1] == 1 && !padding && (!weights || weights->strides()[0] == 1);
  // Indices and offsets are promoted to one dtype.
  const DType index = indices.dtype() == offsets.dtype() ? indices.dtype() : DType::kInt64;
  const int64_t bags = offsets.numel() - (has_last_offset ? 1 : 0);
  const Dims rows{bags, table.sizes()[1]}, sizes{is_sum ? offsets.numel() : bags};
  return {{rows, table.dtype(), {}, table.device()},
          {Dims{is_sum && is_fast ? 0 : indices.numel()}, index, {}, table.device()},
          {sizes, index, {}, table.device()},
          {kind == BagMode::kMax ? rows : sizes, index, {}, table.device()}};
}

OP("aten::embedding_bag")
    .infer([](const Tensor& table, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
              const OptionalTensor& weights,
              bool last) { return bag_metas(table, indices, offsets, mode, weights, last, {}); })
    .gradient(gradient_of_embedding_bag)
    .saves("weight, indices, offsets, per_sample_weights, result2, result3");
OP("aten::embedding_bag.padding_idx")
    .infer([](const Tensor& table, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
              const OptionalTensor& weights, bool last, std::optional<int64_t> padding) {
      return bag_metas(table, indices, offsets, mode, weights, last, padding);
    })
    .gradient(gradient_of_embedding_bag)
    .saves("weight, indices, offsets, per_sample_weights, result2, result3");

}  // namespace
}  // namespace tensord::kernels
