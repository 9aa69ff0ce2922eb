// Which operators oneDNN can do at the end of a convolution or a linear layer, and with what numbers.
#include <cmath>
#include <limits>

#include "core/ops/packed.h"

namespace tensord::kernels {
namespace {

using ops::Epilogue;
using ops::Value;
using Kind = ops::EpilogueKind;
using Arguments = std::span<const Value>;
using Result = std::optional<Epilogue>;

Epilogue clip(double low, double high) { return {Kind::kClip, low, high, {}, {}}; }
double number_or(const Value& value, double otherwise) {
  return value.is_number() ? value.to_scalar().to_double() : otherwise;
}
bool is_one(const Value& value) { return value.is_number() && value.to_scalar().to_double() == 1; }

EPILOGUE("aten::relu", [](Arguments) { return Epilogue{Kind::kRelu}; });
EPILOGUE("aten::relu6", [](Arguments) { return clip(0, 6); });
EPILOGUE("aten::hardtanh", [](Arguments v) -> Result {
  const double low = number_or(v[1], -1), high = number_or(v[2], 1);
  if (!(low <= high)) return std::nullopt;
  return clip(low, high);
});
EPILOGUE("aten::clamp", [](Arguments v) -> Result {
  if (v[1].is_none() && v[2].is_none()) return std::nullopt;
  constexpr double kMost = std::numeric_limits<double>::infinity();
  const double low = number_or(v[1], -kMost), high = number_or(v[2], kMost);
  // Bounds that cross, or that are NaN, are the plain operator's.
  if (!(low <= high)) return std::nullopt;
  return clip(low, high);
});
EPILOGUE("aten::leaky_relu", [](Arguments v) { return Epilogue{Kind::kRelu, number_or(v[1], 0.01)}; });
EPILOGUE("aten::sigmoid", [](Arguments) { return Epilogue{Kind::kSigmoid}; });
EPILOGUE("aten::tanh", [](Arguments) { return Epilogue{Kind::kTanh}; });
EPILOGUE("aten::silu", [](Arguments) { return Epilogue{Kind::kSilu}; });
EPILOGUE("aten::hardswish", [](Arguments) { return Epilogue{Kind::kHardSwish}; });
EPILOGUE("aten::hardsigmoid", [](Arguments) { return Epilogue{Kind::kHardSigmoid}; });
EPILOGUE("aten::gelu", [](Arguments v) -> Result {
  if (!v[1].is_string()) return std::nullopt;
  return Epilogue{v[1].to_string() == "tanh" ? Kind::kGeluTanh : Kind::kGelu};
});
EPILOGUE("aten::elu", [](Arguments v) -> Result {
  if (!is_one(v[2]) || !is_one(v[3])) return std::nullopt;
  return Epilogue{Kind::kElu, number_or(v[1], 1)};
});
EPILOGUE("aten::add.Tensor", [](Arguments v) -> Result {
  if (!is_one(v[2])) return std::nullopt;
  return Epilogue{Kind::kAdd};
});

// Batch norm with known statistics: x * w / sqrt(var + eps) + (b - mean * w / sqrt(var + eps)).
EPILOGUE("aten::batch_norm", [](Arguments v) -> Result {
  const Value &weight = v[1], &bias = v[2], &mean = v[3], &variance = v[4];
  if (!v[5].is_bool() || v[5].to_bool() || !v[7].is_float() || !mean.is_tensor() || !variance.is_tensor())
    return std::nullopt;
  const auto numel = mean.to_tensor().numel();
  for (const Value* value : {&weight, &bias, &mean, &variance}) {
    if (value->is_none()) continue;
    const Tensor& t = value->to_tensor();
    if (t.dtype() != DType::kFloat32 || !(t.device() == Device{}) || t.is_meta() || t.ndim() != 1 || t.numel() != numel)
      return std::nullopt;
  }
  const auto at = [](const Value& value, int64_t i, double otherwise) {
    if (value.is_none()) return otherwise;
    const Tensor& t = value.to_tensor();
    return static_cast<double>(t.data<float>()[i * t.strides()[0]]);
  };
  Epilogue affine{Kind::kChannelAffine, 0, 0, Tensor::empty(Dims{numel}, DType::kFloat32),
                  Tensor::empty(Dims{numel}, DType::kFloat32)};
  for (int64_t i = 0; i < numel; ++i) {
    const double by = at(weight, i, 1) / std::sqrt(at(variance, i, 1) + v[7].to_float());
    affine.scale.data<float>()[i] = static_cast<float>(by);
    affine.shift.data<float>()[i] = static_cast<float>(at(bias, i, 0) - at(mean, i, 0) * by);
  }
  return affine;
});

}  // namespace
}  // namespace tensord::kernels
