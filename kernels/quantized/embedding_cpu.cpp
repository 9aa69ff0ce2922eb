// The loops of tables of 8 and of 4 bits.
#include "kernels/quantized/embedding.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/tensor/half.h"

namespace tensord::kernels {

using ops::QuantizedType;

EmbeddingParams::EmbeddingParams(ops::QuantizedPtr weight) : weight_(std::move(weight)) {
  const ops::Quantizer& quantizer = weight_->quantizer();
  check((weight_->type() == QuantizedType::kQUInt8 || is_4bit()) && weight_->sizes().size() == 2,
        "a quantized embedding's weight is ", weight_->describe(), ", expected a matrix of quint8 or quint4x2");
  check(quantizer.scheme == ops::QuantizationScheme::kPerChannelFloatQParams && quantizer.axis == 0,
        "a quantized embedding's weight has no scale and zero point of float32 for each row");
  values_ = weight_->values().contiguous();
  for (int64_t i = 0; i < rows(); ++i) {
    // fbgemm's layout; with 4 bits, scale and zero point are float16.
    const float scale = quantizer.scales.data<float>()[i];
    const float bias = -1.0f * quantizer.zero_points.data<float>()[i] * scale;
    scales_.push_back(is_4bit() ? static_cast<float>(Half(scale)) : scale);
    biases_.push_back(is_4bit() ? static_cast<float>(Half(bias)) : bias);
  }
}

void EmbeddingParams::add_row(int64_t row, float weight, float* out) const {
  const float scale = scales_[static_cast<size_t>(row)] * weight, bias = biases_[static_cast<size_t>(row)] * weight;
  const uint8_t* bytes = values_.data<uint8_t>() + row * values_.sizes()[1];
  for (int64_t i = 0; i < width(); ++i) {
    const uint32_t q = is_4bit() ? bytes[i / 2] >> (i % 2 * 4) & 15u : bytes[i];
    out[i] = std::fma(scale, static_cast<float>(q), out[i] + bias);
  }
}

namespace {

using MaybeTensor = std::optional<Tensor>;

// Integers of an index tensor, dense.
std::vector<int64_t> integers_of(const Tensor& tensor, const char* name) {
  check(tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kInt32, "expected ", name,
        " of int32 or int64, but got ", name_of(tensor.dtype()));
  const Tensor dense = tensor.to(DType::kInt64).contiguous();
  return {dense.data<int64_t>(), dense.data<int64_t>() + dense.numel()};
}

void check_index(int64_t index, int64_t rows) {
  if (index < 0 || index >= rows) fail(ErrorCode::kOutOfRange, "index ", index, " is out of range of ", rows, " rows");
}

void run_embedding(const ops::KernelContext&, const EmbeddingParamsPtr& params, const Tensor& indices, bool,
                   Tensor& out) {
  const std::vector<int64_t> rows = integers_of(indices, "indices");
  const int64_t width = params->width();
  for (const int64_t row : rows) check_index(row, params->rows());
  float* to = out.data<float>();
  parallel_for_cost(static_cast<int64_t>(rows.size()), static_cast<double>(width), [&](int64_t begin, int64_t end) {
    std::fill(to + begin * width, to + end * width, 0.0f);
    for (int64_t i = begin; i < end; ++i) params->add_row(rows[static_cast<size_t>(i)], 1.0f, to + i * width);
  });
}

// The begins of the bags; 2-d indices have one bag a row.
std::vector<int64_t> bag_starts(const Tensor& indices, const MaybeTensor& offsets, bool has_last) {
  if (!offsets) {
    std::vector<int64_t> starts;
    for (int64_t i = 0; i <= indices.sizes()[0]; ++i) starts.push_back(i * indices.sizes()[1]);
    return starts;
  }
  std::vector<int64_t> starts = integers_of(*offsets, "offsets");
  if (!has_last) starts.push_back(indices.numel());
  int64_t before = 0;
  for (const int64_t start : starts) {
    check(start >= before && start <= indices.numel(), "offsets have to grow from 0 to at most ", indices.numel(),
          ", but there is ", start, " after ", before);
    before = start;
  }
  check(starts.front() == 0 && (!has_last || starts.back() == indices.numel()), "offsets go from ", starts.front(),
        " to ", starts.back(), ", expected 0 to ", indices.numel());
  return starts;
}

void run_bags(const ops::KernelContext&, const EmbeddingParamsPtr& params, const Tensor& indices,
              const MaybeTensor& offsets, bool, int64_t, bool, const MaybeTensor& weights, const MaybeTensor&,
              bool has_last, Tensor& out) {
  const std::vector<int64_t> rows = integers_of(indices, "indices"), starts = bag_starts(indices, offsets, has_last);
  for (const int64_t row : rows) check_index(row, params->rows());
  const Tensor dense = weights ? weights->contiguous() : Tensor();
  const float* by = weights ? dense.data<float>() : nullptr;
  const int64_t width = params->width(), bags = out.sizes()[0];
  float* to = out.data<float>();
  const double work = static_cast<double>(rows.size()) * static_cast<double>(width) / static_cast<double>(bags + 1);
  parallel_for_cost(bags, work, [&](int64_t begin, int64_t end) {
    std::fill(to + begin * width, to + end * width, 0.0f);
    for (int64_t bag = begin; bag < end; ++bag) {
      for (int64_t i = starts[static_cast<size_t>(bag)]; i < starts[static_cast<size_t>(bag + 1)]; ++i)
        params->add_row(rows[static_cast<size_t>(i)], by ? by[i] : 1.0f, to + bag * width);
    }
  });
}

IMPL("quantized::embedding_byte", DeviceKind::kCPU, &run_embedding);
IMPL("quantized::embedding_4bit", DeviceKind::kCPU, &run_embedding);
IMPL("quantized::embedding_bag_byte", DeviceKind::kCPU, &run_bags);
IMPL("quantized::embedding_bag_4bit", DeviceKind::kCPU, &run_bags);

}  // namespace
}  // namespace tensord::kernels
