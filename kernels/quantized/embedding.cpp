// Tables of 8 and of 4 bits with a scale and a zero point for each row: rows of float32 by index, and sums over bags.
#include <cmath>
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/attributes/samples.h"
#include "core/ops/custom_class.h"
#include "core/ops/quantized.h"
#include "core/tensor/half.h"

namespace tensord::kernels {
namespace {

using ops::QuantizedType;
using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

// PyTorch's packed table.
class EmbeddingParams final : public ops::OpaqueObject {
 public:
  static constexpr const char* kClass = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase";

  explicit EmbeddingParams(ops::QuantizedPtr weight) : weight_(std::move(weight)) {
    const ops::Quantizer& quantizer = weight_->quantizer();
    check((weight_->type() == QuantizedType::kQUInt8 || is_4bit()) && weight_->sizes().size() == 2,
          "a quantised embedding's weight is ", weight_->describe(), ", expected a matrix of quint8 or quint4x2");
    check(quantizer.scheme == ops::QuantizationScheme::kPerChannelFloatQParams && quantizer.axis == 0,
          "a quantised embedding's weight has no scale and zero point of float32 for each row");
    values_ = weight_->values().contiguous();
    for (int64_t i = 0; i < rows(); ++i) {
      // As fbgemm packs them; of 4 bits in float16.
      const float scale = quantizer.scales.data<float>()[i];
      const float bias = -1.0f * quantizer.zero_points.data<float>()[i] * scale;
      scales_.push_back(is_4bit() ? static_cast<float>(Half(scale)) : scale);
      biases_.push_back(is_4bit() ? static_cast<float>(Half(bias)) : bias);
    }
  }
  std::string class_name() const override { return kClass; }
  bool is_4bit() const { return weight_->type() == QuantizedType::kQUInt4x2; }
  int64_t rows() const { return weight_->sizes()[0]; }
  int64_t width() const { return weight_->sizes()[1]; }
  const ops::QuantizedPtr& weight() const { return weight_; }

  // out += weight * row
  void add_row(int64_t row, float weight, float* out) const {
    const float scale = scales_[static_cast<size_t>(row)] * weight, bias = biases_[static_cast<size_t>(row)] * weight;
    const uint8_t* bytes = values_.data<uint8_t>() + row * values_.sizes()[1];
    for (int64_t i = 0; i < width(); ++i) {
      const uint32_t q = is_4bit() ? bytes[i / 2] >> (i % 2 * 4) & 15u : bytes[i];
      out[i] = std::fma(scale, static_cast<float>(q), out[i] + bias);
    }
  }

 private:
  const ops::QuantizedPtr weight_;
  Tensor values_;
  std::vector<float> scales_, biases_;
};
using EmbeddingParamsPtr = IntrusivePtr<EmbeddingParams>;

Value make_params(const Value& weight) {
  const auto* quantized = ops::as_quantized(weight);
  check(quantized != nullptr, "expected a quantised weight, but got a ", weight.tag_name());
  return Value(IntrusivePtr<ops::OpaqueObject>(
      make_intrusive<EmbeddingParams>(ops::QuantizedPtr(const_cast<ops::QuantizedTensor*>(quantized)))));
}

// (version, [weight], [], [bits])
IntrusivePtr<ops::OpaqueObject> restore(const Value& state) {
  check(state.is_tuple() && state.to_tuple()->items.size() == 4, EmbeddingParams::kClass,
        ": its state has the wrong form");
  const auto& items = state.to_tuple()->items;
  check(items[0].is_int() && items[1].is_list() && items[1].to_list()->items.size() == 1 && items[3].is_list() &&
            items[3].to_list()->items.size() == 1,
        EmbeddingParams::kClass, ": its state has the wrong form");
  if (items[0].to_int() != 1)
    fail(ErrorCode::kUnimplemented, EmbeddingParams::kClass, ": version ", items[0].to_int(), " is not known");
  Value made = make_params(items[1].to_list()->items[0]);
  const auto& params = static_cast<const EmbeddingParams&>(*made.to_opaque());
  const Value& bits = items[3].to_list()->items[0];
  check(bits.is_int() && bits.to_int() == (params.is_4bit() ? 4 : 8), EmbeddingParams::kClass, ": its bits do not fit ",
        params.weight()->describe());
  return made.to_opaque();
}
CUSTOM_CLASS(EmbeddingParams::kClass, &restore);

void check_bits(const EmbeddingParams& params, bool is_4bit) {
  check(params.is_4bit() == is_4bit, "expected a table of ", is_4bit ? 4 : 8, " bits, but got ",
        params.weight()->describe());
}

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

// --- rows

template <bool k4bit>
TensorMeta infer_embedding(const EmbeddingParamsPtr& params, const Tensor& indices, bool) {
  check_bits(*params, k4bit);
  Dims sizes = indices.sizes();
  sizes.push_back(params->width());
  return {std::move(sizes), DType::kFloat32, {}, indices.device()};
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

// --- bags

// Where the bags of the indices begin; 2-d indices are one bag a row.
Dims bag_sizes(const EmbeddingParams& params, const Tensor& indices, const MaybeTensor& offsets, bool has_last) {
  check(indices.ndim() == 1 || indices.ndim() == 2, "expected indices of one or two dimensions, but got ",
        indices.sizes());
  check(offsets.has_value() == (indices.ndim() == 1), "offsets are for indices of one dimension, which need them");
  if (!offsets) return {indices.sizes()[0], params.width()};
  check(offsets->ndim() == 1 && (!has_last || offsets->numel() >= 1), "expected offsets of one dimension, but got ",
        offsets->sizes());
  return {offsets->numel() - (has_last ? 1 : 0), params.width()};
}

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

template <bool k4bit>
TensorMeta infer_bags(const EmbeddingParamsPtr& params, const Tensor& indices, const MaybeTensor& offsets, bool,
                      int64_t mode, bool is_pruned, const MaybeTensor& weights, const MaybeTensor& mapping,
                      bool has_last) {
  check_bits(*params, k4bit);
  if (mode != 0) fail(ErrorCode::kUnimplemented, "mode ", mode, " is not supported, only sums (0)");
  if (is_pruned || mapping) fail(ErrorCode::kUnimplemented, "pruned tables are not supported");
  check(!weights || (weights->dtype() == DType::kFloat32 && weights->numel() == indices.numel()),
        "expected a weight of float32 for each index, but got ", weights ? describe(*weights) : "");
  return {bag_sizes(*params, indices, offsets, has_last), DType::kFloat32, {}, indices.device()};
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

#define TABLE "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase weight"
#define BAG_ARGUMENTS                                                                                              \
  ", Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, " \
  "Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> "  \
  "Tensor"

OP("quantized::embedding_byte(" TABLE ", Tensor indices, bool pruned_weights=False) -> Tensor")
    .infer(&infer_embedding<false>)
    .constant_result()
    .set<ops::KeepsSamples>(ops::always_keeps_samples);
KERNEL("quantized::embedding_byte", DeviceKind::kCPU, &run_embedding);
OP("quantized::embedding_4bit(" TABLE ", Tensor indices, bool pruned_weights=False) -> Tensor")
    .infer(&infer_embedding<true>)
    .constant_result()
    .set<ops::KeepsSamples>(ops::always_keeps_samples);
KERNEL("quantized::embedding_4bit", DeviceKind::kCPU, &run_embedding);
OP("quantized::embedding_bag_byte(" TABLE BAG_ARGUMENTS).infer(&infer_bags<false>).constant_result();
KERNEL("quantized::embedding_bag_byte", DeviceKind::kCPU, &run_bags);
OP("quantized::embedding_bag_4bit(" TABLE BAG_ARGUMENTS).infer(&infer_bags<true>).constant_result();
KERNEL("quantized::embedding_bag_4bit", DeviceKind::kCPU, &run_bags);

OP("quantized::embedding_bag_prepack(Tensor weight) -> __torch__.torch.classes.quantized.EmbeddingPackedParamsBase")
    .direct([](const Tensor& weight) -> Value {
      fail(ErrorCode::kInvalidArgument, "expected a quantised weight, but got ", name_of(weight.dtype()));
    });
QUANTIZED("quantized::embedding_bag_prepack").direct([](std::span<const Value> v, std::vector<Value>& returns) {
  returns.push_back(make_params(v[0]));
});
OP("quantized::embedding_bag_unpack(__torch__.torch.classes.quantized.EmbeddingPackedParamsBase W_prepack) -> Tensor")
    .direct([](const EmbeddingParamsPtr& params) -> Value {
      return Value(IntrusivePtr<ops::OpaqueObject>(params->weight()));
    });

}  // namespace
}  // namespace tensord::kernels
