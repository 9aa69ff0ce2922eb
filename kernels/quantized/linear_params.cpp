#include "kernels/quantized/linear_params.h"

#include "core/ops/custom_class.h"
#include "core/ops/registry.h"
#include "kernels/base/numbers.h"

namespace tensord::kernels {
namespace {

using ops::QuantizedType;
using ops::Value;

// (weight, bias), the state that all engines write.
IntrusivePtr<ops::OpaqueObject> restore_linear(const Value& state) {
  check(state.is_tuple() && state.to_tuple()->items.size() == 2, LinearParams::kClass,
        ": its state is not a weight and bias");
  return make_intrusive<LinearParams>(state.to_tuple()->items[0], state.to_tuple()->items[1]);
}
CUSTOM_CLASS(LinearParams::kClass, &restore_linear);

}  // namespace

QuantizedWeight::QuantizedWeight(ops::QuantizedPtr weight) : weight_(std::move(weight)) {
  const ops::Quantizer& quantizer = weight_->quantizer();
  check(weight_->type() == QuantizedType::kQInt8 && weight_->sizes().size() == 2, "a linear layer's weight is ",
        weight_->describe(), ", expected a matrix of qint8");
  check(!quantizer.is_per_channel() ||
            (quantizer.scheme == ops::QuantizationScheme::kPerChannelAffine && quantizer.axis == 0),
        "a linear layer's weight has its channels along axis ", quantizer.axis, ", expected 0");
  check(outputs() > 0 && inputs() > 0, "a linear layer's weight is ", weight_->describe(), ", which is empty");
  weight_->check_is_stored();
  if (inputs() > kMaxQuantizedDepth) {
    fail(ErrorCode::kUnimplemented, "a quantized linear layer of ", inputs(), " inputs: at most ", kMaxQuantizedDepth,
         " are supported, whose sums fit into 32 bits");
  }
  for (int64_t i = 0; i < outputs(); ++i) {
    scales_.push_back(static_cast<float>(quantizer.scale_at(i)));
    zero_points_.push_back(static_cast<int32_t>(quantizer.zero_point_at(i)));
    has_zero_points_ = has_zero_points_ || zero_points_.back() != 0;
  }
}

const int32_t* QuantizedWeight::column_sums() const {
  matrix();
  return column_sums_.data();
}

LinearParams::LinearParams(const Value& weight, const Value& bias) {
  if (const auto* quantized = ops::as_quantized(weight)) {
    weight_ = std::make_unique<const QuantizedWeight>(ops::QuantizedPtr(const_cast<ops::QuantizedTensor*>(quantized)));
  } else {
    check(weight.is_strided(), "a linear layer's weight is a ", weight.tag_name());
    const Tensor& tensor = weight.to_tensor();
    check(tensor.dtype() == DType::kFloat32 && tensor.ndim() == 2 && tensor.numel() > 0 && !tensor.is_meta(),
          "a linear layer's weight is ", describe(tensor), ", expected a matrix of qint8 or, for float16, of float32");
    half_weight_ = round_to_half(tensor);
  }
  check(bias.is_none() || bias.is_strided(), "a linear layer's bias is a ", bias.tag_name());
  bias_values_.assign(static_cast<size_t>(outputs()), 0.0f);
  if (bias.is_strided()) {
    const Tensor& tensor = bias.to_tensor();
    check(tensor.dtype() == DType::kFloat32 && tensor.ndim() == 1 && tensor.numel() == outputs() && !tensor.is_meta(),
          "a linear layer of ", outputs(), " outputs has the bias ", describe(tensor));
    bias_ = tensor.contiguous();
    bias_values_ = floats_of(bias_);
  }
  if (is_half()) {
    const ops::Op& linear = ops::get_op("aten::linear");
    const Value arguments[] = {Value(), half_weight_, Value(bias_)};
    half_ = linear.pack[static_cast<size_t>(DeviceKind::kCPU)](
        {linear, arguments, ops::Precision::kF32, std::make_shared<ops::PackStore>()});
    check_internal(static_cast<bool>(half_), "a linear layer cannot be packed");
  }
}

const QuantizedWeight& LinearParams::weight() const {
  check(!is_half(), "the layer's weight is of float16, expected qint8");
  return *weight_;
}

const ops::PackedOp& LinearParams::half() const {
  check(is_half(), "the layer's weight is of qint8, expected float16");
  return *half_;
}

size_t DynamicLinear::scratch_bytes(int64_t rows) const {
  const int64_t sums = weight.zero_points() ? (rows + 15) / 16 * 16 : 0;
  return static_cast<size_t>(rows * weight.matrix().row_words() + sums) * 4;
}

}  // namespace tensord::kernels
