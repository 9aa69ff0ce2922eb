// Tables of 8 and of 4 bits with a scale and a zero point for each row: rows of float32 by index, and sums over bags.
#include "kernels/quantized/embedding.h"

#include <optional>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/custom_class.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

Value make_params(const Value& weight) {
  const auto* quantized = ops::as_quantized(weight);
  check(quantized != nullptr, "expected a quantized weight, but got a ", weight.tag_name());
  return Value(IntrusivePtr<ops::OpaqueObject>(
      make_intrusive<EmbeddingParams>(ops::QuantizedPtr(const_cast<ops::QuantizedTensor*>(quantized)))));
}

// (version, [weight], [], [bits])
IntrusivePtr<ops::OpaqueObject> restore_embedding(const Value& state) {
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
CUSTOM_CLASS(EmbeddingParams::kClass, &restore_embedding);

void check_bits(const EmbeddingParams& params, bool is_4bit) {
  check(params.is_4bit() == is_4bit, "expected a table of ", is_4bit ? 4 : 8, " bits, but got ",
        params.weight()->describe());
}

// --- rows

template <bool k4bit>
TensorMeta infer_embedding(const EmbeddingParamsPtr& params, const Tensor& indices, bool) {
  check_bits(*params, k4bit);
  Dims sizes = indices.sizes();
  sizes.push_back(params->width());
  return {std::move(sizes), DType::kFloat32, {}, indices.device()};
}

// --- bags

// 2-d indices are one bag a row.
Dims bag_sizes(const EmbeddingParams& params, const Tensor& indices, const MaybeTensor& offsets, bool has_last) {
  check(indices.ndim() == 1 || indices.ndim() == 2, "expected indices of one or two dimensions, but got ",
        indices.sizes());
  check(offsets.has_value() == (indices.ndim() == 1), "offsets are for indices of one dimension, which need them");
  if (!offsets) return {indices.sizes()[0], params.width()};
  check(offsets->ndim() == 1 && (!has_last || offsets->numel() >= 1), "expected offsets of one dimension, but got ",
        offsets->sizes());
  return {offsets->numel() - (has_last ? 1 : 0), params.width()};
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

OP("quantized::embedding_byte")
    .infer(&infer_embedding<false>)
    .constant_result()
    .set<ops::BatchIndependent>(ops::always_batch_independent);
OP("quantized::embedding_4bit")
    .infer(&infer_embedding<true>)
    .constant_result()
    .set<ops::BatchIndependent>(ops::always_batch_independent);
OP("quantized::embedding_bag_byte").infer(&infer_bags<false>).constant_result();
OP("quantized::embedding_bag_4bit").infer(&infer_bags<true>).constant_result();

OP("quantized::embedding_bag_prepack").impl([](const Tensor& weight) -> Value {
  fail(ErrorCode::kInvalidArgument, "expected a quantized weight, but got ", name_of(weight.dtype()));
});
IMPL("quantized::embedding_bag_prepack", ops::kQuantizedCPU,
     [](std::span<const Value> v, std::vector<Value>& returns) { returns.push_back(make_params(v[0])); });
OP("quantized::embedding_bag_unpack").impl([](const EmbeddingParamsPtr& params) -> Value {
  return Value(Tensor(params->weight()));
});

}  // namespace
}  // namespace tensord::kernels
