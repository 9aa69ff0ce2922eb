#include "kernels/quantized/conv_params.h"

#include "core/ops/custom_class.h"
#include "kernels/base/numbers.h"

namespace tensord::kernels {
namespace {

using ops::Value;

constexpr int64_t kMaxGeometry = 1 << 20;

void check_list(const std::vector<int64_t>& list, size_t dims, int64_t least, const char* what) {
  check(list.size() == dims, "a quantized convolution of ", dims, " dimensions has ", list.size(), " numbers of ",
        what);
  for (const int64_t number : list)
    check(number >= least && number <= kMaxGeometry, "a quantized convolution has the ", what, " ", number);
}

QuantizedPtr weight_of(const Value& value) { return QuantizedPtr(const_cast<QuantizedTensor*>(&quantized_of(value))); }

// Reads numbers from a list of ints, with bounds.
class Numbers {
 public:
  explicit Numbers(std::vector<int64_t> numbers) : numbers_(std::move(numbers)) {}
  int64_t next() {
    check(at_ < numbers_.size(), "a packed convolution's state has too few numbers");
    return numbers_[at_++];
  }
  std::vector<int64_t> next(int64_t count) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(next());
    return out;
  }

 private:
  std::vector<int64_t> numbers_;
  size_t at_ = 0;
};

std::vector<int64_t> integers(const Tensor& tensor) {
  check(is_integral(tensor.dtype(), false) && tensor.ndim() <= 1 && tensor.numel() <= 64,
        "a packed convolution's state has numbers ", describe(tensor));
  return integers_of(tensor);
}

const std::vector<Value>& items_of(const Value& value, size_t least) {
  check(value.is_list() && value.to_list()->items.size() >= least, "a packed convolution's state has the wrong form");
  return value.to_list()->items;
}

// dim, stride, padding, dilation, output padding, groups, whether it is transposed.
ConvParams::Geometry read_geometry(Numbers numbers, size_t dims) {
  check(numbers.next() == static_cast<int64_t>(dims), "a packed convolution of ", dims,
        " dimensions has a state of others");
  const auto count = static_cast<int64_t>(dims);
  ConvParams::Geometry out;
  out.stride = numbers.next(count);
  out.padding = numbers.next(count);
  out.dilation = numbers.next(count);
  numbers.next(count);
  out.groups = numbers.next();
  if (numbers.next() != 0) fail(ErrorCode::kUnimplemented, "transposed quantized convolutions are not supported");
  return out;
}

IntrusivePtr<ops::OpaqueObject> make(const Value& weight, const Value& bias, ConvParams::Geometry geometry,
                                     size_t dims) {
  auto made = make_intrusive<ConvParams>(weight_of(weight), bias, std::move(geometry));
  check(made->dims() == dims, "a packed convolution of ", dims, " dimensions has a weight ",
        made->weight()->describe());
  return made;
}

// (weight, bias, [stride], [padding], [dilation], groups), numbers as tensors.
IntrusivePtr<ops::OpaqueObject> restore_first(const std::vector<Value>& items, size_t dims) {
  const auto list = [&](const Value& value) {
    std::vector<int64_t> out;
    for (const Value& item : items_of(value, 0)) out.push_back(item.to_tensor().item_int());
    return out;
  };
  check(items[5].is_strided(), "a packed convolution's state has no groups");
  return make(items[0], items[1], {list(items[2]), list(items[3]), list(items[4]), items[5].to_tensor().item_int()},
              dims);
}

IntrusivePtr<ops::OpaqueObject> restore_conv(const Value& state, size_t dims) {
  check(state.is_tuple(), "a packed convolution's state has the wrong form");
  const std::vector<Value>& items = state.to_tuple()->items;
  if (items.size() == 6) return restore_first(items, dims);
  check(items.size() == 3, "a packed convolution's state has the wrong form");
  if (items[0].is_string() && items[0].to_string() == "2") {
    const std::vector<Value>& tensors = items_of(items[1], 2);
    const Value& bias = items_of(items[2], 1)[0];
    check(tensors[0].is_strided(), "a packed convolution's state has no numbers");
    return make(tensors[1], bias, read_geometry(Numbers(integers(tensors[0].to_tensor())), dims), dims);
  }
  if (items[0].is_int() && items[0].to_int() == 3) {
    std::vector<int64_t> numbers;
    for (const Value& item : items_of(items[1], 0)) numbers.push_back(item.to_int());
    const std::vector<Value>& tensors = items_of(items[2], 3);
    return make(tensors[1], tensors[2], read_geometry(Numbers(std::move(numbers)), dims), dims);
  }
  fail(ErrorCode::kUnimplemented, "a packed convolution's state is of a version that is not known");
}
CUSTOM_CLASS("__torch__.torch.classes.quantized.Conv2dPackedParamsBase",
             [](const Value& state) { return restore_conv(state, 2); });
CUSTOM_CLASS("__torch__.torch.classes.quantized.Conv3dPackedParamsBase",
             [](const Value& state) { return restore_conv(state, 3); });

}  // namespace

ConvParams::ConvParams(QuantizedPtr weight, const Value& bias, Geometry geometry)
    : weight_(std::move(weight)), geometry_(std::move(geometry)) {
  const Quantizer& quantizer = weight_->quantizer();
  const size_t rank = weight_->sizes().size();
  check(weight_->type() == QuantizedType::kQInt8 && (rank == 4 || rank == 5), "a quantized convolution's weight is ",
        weight_->describe(), ", expected qint8 of four or five dimensions");
  check(!quantizer.is_per_channel() ||
            (quantizer.scheme == ops::QuantizationScheme::kPerChannelAffine && quantizer.axis == 0),
        "a quantized convolution's weight has its channels along axis ", quantizer.axis, ", expected 0");
  check(weight_->values().numel() > 0, "a quantized convolution's weight is ", weight_->describe(), ", which is empty");
  weight_->check_is_stored();
  check_list(geometry_.stride, dims(), 1, "stride");
  check_list(geometry_.padding, dims(), 0, "padding");
  check_list(geometry_.dilation, dims(), 1, "dilation");
  check(geometry_.groups >= 1 && outputs() % geometry_.groups == 0, "a quantized convolution of ", outputs(),
        " outputs has ", geometry_.groups, " groups");
  if (group_inputs() * taps() > kMaxQuantizedDepth)
    fail(ErrorCode::kUnimplemented, "a quantized convolution with sums of ", group_inputs() * taps(),
         " numbers: at most ", kMaxQuantizedDepth, " are supported");
  bias_values_.assign(static_cast<size_t>(outputs()), 0.0f);
  check(bias.is_none() || bias.is_strided(), "a quantized convolution's bias is a ", bias.tag_name());
  if (bias.is_strided()) {
    const Tensor& tensor = bias.to_tensor();
    check(tensor.dtype() == DType::kFloat32 && tensor.ndim() == 1 && tensor.numel() == outputs() && !tensor.is_meta(),
          "a quantized convolution of ", outputs(), " outputs has the bias ", describe(tensor));
    bias_ = tensor.contiguous();
    bias_values_ = floats_of(bias_);
  }
  for (int64_t i = 0; i < outputs(); ++i) {
    scales_.push_back(static_cast<float>(quantizer.scale_at(i)));
    zero_points_.push_back(static_cast<int32_t>(quantizer.zero_point_at(i)));
    has_zero_points_ = has_zero_points_ || zero_points_.back() != 0;
  }
}

int64_t ConvParams::taps() const {
  int64_t out = 1;
  for (size_t d = 2; d < weight_->sizes().size(); ++d) out *= weight_->sizes()[d];
  return out;
}

}  // namespace tensord::kernels
