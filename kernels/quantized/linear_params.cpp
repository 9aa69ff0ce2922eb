#include "kernels/quantized/linear_params.h"

#include <algorithm>

#include "core/ops/custom_class.h"
#include "core/ops/registry.h"
#include "core/tensor/half.h"

namespace tensord::kernels {
namespace {

using ops::QuantizedType;
using ops::Value;

// Rounded to float16, what is too large to the largest one, as fbgemm packs it.
Tensor round_to_half(const Tensor& weight) {
  constexpr float kLargest = 65504;
  const Tensor source = weight.contiguous(), out = Tensor::empty(weight.sizes(), DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i)
    out.data<float>()[i] = static_cast<float>(Half(std::clamp(source.data<float>()[i], -kLargest, kLargest)));
  return out;
}

// (weight, bias), which all engines write.
IntrusivePtr<ops::OpaqueObject> restore(const Value& state) {
  check(state.is_tuple() && state.to_tuple()->items.size() == 2, LinearParams::kClass,
        ": its state is no weight and bias");
  return make_intrusive<LinearParams>(state.to_tuple()->items[0], state.to_tuple()->items[1]);
}
CUSTOM_CLASS(LinearParams::kClass, &restore);

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
    fail(ErrorCode::kUnimplemented, "a quantised linear layer of ", inputs(), " inputs: at most ", kMaxQuantizedDepth,
         " are supported, whose sums fit into 32 bits");
  }
  for (int64_t i = 0; i < outputs(); ++i) {
    scales_.push_back(static_cast<float>(quantizer.scale_at(i)));
    zero_points_.push_back(static_cast<int32_t>(quantizer.zero_point_at(i)));
    has_zero_points_ = has_zero_points_ || zero_points_.back() != 0;
  }
}

const QuantizedMatrix& QuantizedWeight::matrix() const {
  std::call_once(packed_, [this] {
    const Tensor& values = weight_->values();
    matrix_ = std::make_unique<const QuantizedMatrix>(values.data<int8_t>(), outputs(), inputs(), values.strides()[0],
                                                      values.strides()[1]);
    column_sums_ = matrix_->sums();
    for (size_t i = 0; i < column_sums_.size(); ++i)
      column_sums_[i] -= static_cast<int32_t>(inputs()) * zero_points_[i];
  });
  return *matrix_;
}

const int32_t* QuantizedWeight::column_sums() const {
  matrix();
  return column_sums_.data();
}

LinearParams::LinearParams(const Value& weight, const Value& bias) {
  if (const auto* quantized = ops::as_quantized(weight)) {
    weight_ = std::make_unique<const QuantizedWeight>(ops::QuantizedPtr(const_cast<ops::QuantizedTensor*>(quantized)));
  } else {
    check(weight.is_tensor(), "a linear layer's weight is a ", weight.tag_name());
    const Tensor& tensor = weight.to_tensor();
    check(tensor.dtype() == DType::kFloat32 && tensor.ndim() == 2 && tensor.numel() > 0 && !tensor.is_meta(),
          "a linear layer's weight is ", describe(tensor), ", expected a matrix of qint8 or, for float16, of float32");
    half_weight_ = round_to_half(tensor);
  }
  check(bias.is_none() || bias.is_tensor(), "a linear layer's bias is a ", bias.tag_name());
  bias_values_.assign(static_cast<size_t>(outputs()), 0.0f);
  if (bias.is_tensor()) {
    const Tensor& tensor = bias.to_tensor();
    check(tensor.dtype() == DType::kFloat32 && tensor.ndim() == 1 && tensor.numel() == outputs() && !tensor.is_meta(),
          "a linear layer of ", outputs(), " outputs has the bias ", describe(tensor));
    bias_ = tensor.contiguous();
    std::copy_n(bias_.data<float>(), bias_values_.size(), bias_values_.begin());
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

void DynamicLinear::run(const float* x, int64_t rows, float* y, void* scratch, int threads) const {
  const QuantizedMatrix& matrix = weight.matrix();
  const Extremes extremes = extremes_of(x, rows * matrix.depth());
  check(extremes.is_finite, "the input has numbers that are not finite, for which there is no scale");
  const RowQuantizer quantizer = choose_quantizer(extremes.least, extremes.greatest, 0, reduces_range ? 127 : 255);
  auto* words = static_cast<uint32_t*>(scratch);
  auto* row_sums = weight.zero_points() ? reinterpret_cast<int32_t*>(words + rows * matrix.row_words()) : nullptr;
  quantize_rows(quantizer, x, rows, matrix.depth(), words, matrix.row_words(), row_sums);
  QuantizedFinish finish;
  finish.zero_point = quantizer.zero_point;
  finish.column_sums = weight.column_sums();
  finish.weight_zero_points = weight.zero_points();
  finish.row_sums = row_sums;
  finish.column_scales = weight.scales().data();
  finish.scale = quantizer.scale;
  finish.bias = bias;
  finish.relu = relu;
  finish.out = y;
  finish.out_stride = matrix.columns();
  quantized_product(matrix, words, rows, finish, threads);
}

}  // namespace tensord::kernels
