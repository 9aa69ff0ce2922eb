// Elementwise functions of quantized tensors, sums and products of two, and concatenation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/registry.h"
#include "kernels/quantized/bytes.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Arguments = std::span<const Value>;
using Returns = std::vector<Value>;

double number(const Value& value) { return value.to_scalar().to_double(); }

// --- functions of one number, as tables of 256 results

float relu(float x) { return x > 0 ? x : 0.0f; }
float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float hardsigmoid(float x) { return std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f; }
float hardswish(float x) { return x * std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f; }

// The result has the operand's scale and zero point.
ops::ReturnFn same_scale(const std::function<float(float)>& function) {
  return [function](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    returns.push_back(map_bytes(x, x.quantizer(), function));
  };
}
// Scale and zero point are given by the arguments from `at` on.
ops::ReturnFn given_scale(size_t at, const std::function<float(float)>& function) {
  return [at, function](Arguments v, Returns& returns) {
    returns.push_back(map_bytes(bytes_of(v[0]), per_tensor(v[at], v[at + 1]), function));
  };
}
// Scale and zero point are fixed, for functions with a range of their own: from `least` on, over `width`.
ops::ReturnFn fixed_scale(float least, double width, const std::function<float(float)>& function) {
  return [least, width, function](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    const int64_t low = ops::range_of(x.type()).first, zero_point = least < 0 ? low + 128 : low;
    returns.push_back(map_bytes(x, per_tensor(width / 256, zero_point), function));
  };
}

// In place: writes the result, which has the operand's scale, into the operand's integers.
ops::ReturnFn in_place(const char* name) {
  return [name](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    if (x.is_of_module || !x.values().storage()->ensure_writable())
      fail(ErrorCode::kUnimplemented, "is not implemented for quantized tensors that belong to the module");
    const std::vector<Value> results = ops::run(ops::get_op(name), v);
    x.values().copy_from(bytes_of(results.at(0)).values());
    returns.push_back(v[0]);
  };
}

IMPL("aten::relu", ops::kQuantizedCPU, same_scale(relu));
IMPL("aten::relu_", ops::kQuantizedCPU, in_place("aten::relu"));
IMPL("aten::hardtanh_", ops::kQuantizedCPU, in_place("aten::hardtanh"));
IMPL("aten::leaky_relu_", ops::kQuantizedCPU, in_place("aten::leaky_relu"));
IMPL("aten::sigmoid", ops::kQuantizedCPU, fixed_scale(0, 1, sigmoid));
IMPL("aten::tanh", ops::kQuantizedCPU, fixed_scale(-1, 2, [](float x) { return std::tanh(x); }));
IMPL("aten::hardsigmoid", ops::kQuantizedCPU, fixed_scale(0, 1, hardsigmoid));
IMPL("aten::hardtanh aten::clamp", ops::kQuantizedCPU, [](Arguments v, Returns& returns) {
  const QuantizedTensor& x = bytes_of(v[0]);
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const auto low = static_cast<float>(v[1].is_none() ? -kAll : number(v[1]));
  const auto high = static_cast<float>(v[2].is_none() ? kAll : number(v[2]));
  returns.push_back(map_bytes(x, x.quantizer(), [=](float y) { return std::min(std::max(y, low), high); }));
});
IMPL("aten::leaky_relu", ops::kQuantizedCPU, [](Arguments v, Returns& returns) {
  const QuantizedTensor& x = bytes_of(v[0]);
  const auto slope = static_cast<float>(number(v[1]));
  returns.push_back(map_bytes(x, x.quantizer(), [=](float y) { return y > 0 ? y : y * slope; }));
});
// Dropout of a served model. There is no quantized training.
IMPL("aten::dropout", ops::kQuantizedCPU, [](Arguments v, Returns& returns) {
  check(!v[2].to_bool(), "dropout in training is not implemented for quantized tensors");
  returns.push_back(v[0]);
});

QUANTIZED_OP("quantized::relu6", [](Arguments v, Returns& returns) {
  check(!v[1].to_bool(), "is not implemented in place");
  const QuantizedTensor& x = bytes_of(v[0]);
  returns.push_back(map_bytes(x, x.quantizer(), [](float y) { return std::min(std::max(y, 0.0f), 6.0f); }));
});
QUANTIZED_OP("quantized::sigmoid", given_scale(1, sigmoid));
QUANTIZED_OP("quantized::hardswish", given_scale(1, hardswish));
QUANTIZED_OP("quantized::leaky_relu", [](Arguments v, Returns& returns) {
  check(!v[2].to_bool(), "is not implemented in place");
  const auto slope = static_cast<float>(number(v[1]));
  returns.push_back(map_bytes(bytes_of(v[0]), per_tensor(v[3], v[4]), [=](float y) { return y > 0 ? y : y * slope; }));
});
QUANTIZED_OP("quantized::elu", [](Arguments v, Returns& returns) {
  const auto alpha = static_cast<float>(number(v[3])), scale = static_cast<float>(number(v[4])),
             by = static_cast<float>(number(v[5]));
  returns.push_back(map_bytes(bytes_of(v[0]), per_tensor(v[1], v[2]),
                              [=](float y) { return y > 0 ? y * scale : (std::exp(y * by) - 1.0f) * alpha * scale; }));
});
QUANTIZED_OP("quantized::dropout", [](Arguments v, Returns& returns) {
  check(!v[4].to_bool(), "in training is not implemented");
  returns.push_back(v[0]);
});

// --- sums and products of two (elementwise_cpu.cpp)

BytePair pair_of(Arguments v, bool relu) { return {bytes_of(v[0]), bytes_of(v[1]), per_tensor(v[2], v[3]), relu}; }
template <bool kRelu>
void add(Arguments v, Returns& returns) {
  returns.push_back(add_bytes(pair_of(v, kRelu)));
}
template <bool kRelu>
void mul(Arguments v, Returns& returns) {
  returns.push_back(mul_bytes(pair_of(v, kRelu)));
}

QUANTIZED_OP("quantized::add", &add<false>);
QUANTIZED_OP("quantized::add_relu", &add<true>);
QUANTIZED_OP("quantized::mul", &mul<false>);
QUANTIZED_OP("quantized::mul_relu", &mul<true>);

// A product with a number changes the scale, not the integers, except that a negative number mirrors them. The integers
// are copied, so that writing to the result does not change the operand.
template <bool kRelu>
void mul_scalar(Arguments v, Returns& returns) {
  const QuantizedTensor& x = bytes_of(v[0]);
  const double by = number(v[1]);
  const Quantizer& old = x.quantizer();
  const auto [least, most] = ops::range_of(x.type());
  if (by == 0) fail(ErrorCode::kUnimplemented, "is not implemented for 0");
  check(std::isfinite(by), "expected a finite number, but got ", by);
  Value out;
  if (by > 0) {
    out = box(x.type(), x.values().clone(), per_tensor(old.scale * by, old.zero_point));
  } else {
    const int64_t ends = least + most;
    const auto turned = map_bytes(bytes_of(box(x.type(), x.values(), per_tensor(1, 0))), per_tensor(1, 0),
                                  [ends](float q) { return static_cast<float>(ends) - q; });
    out = box(x.type(), bytes_of(turned).values(), per_tensor(old.scale * -by, ends - old.zero_point));
  }
  if (kRelu) out = map_bytes(bytes_of(out), bytes_of(out).quantizer(), relu);
  returns.push_back(out);
}
QUANTIZED_OP("quantized::mul_scalar", &mul_scalar<false>);
QUANTIZED_OP("quantized::mul_scalar_relu", &mul_scalar<true>);
QUANTIZED_OP("quantized::mul.Scalar", &mul_scalar<false>);

// A sum with a number moves the zero point if possible, and else the range.
template <bool kRelu>
void add_scalar(Arguments v, Returns& returns) {
  const QuantizedTensor& x = bytes_of(v[0]);
  const Quantizer& old = x.quantizer();
  const auto [least, most] = ops::range_of(x.type());
  const double steps = std::nearbyint(number(v[1]) / old.scale);
  check(std::abs(steps) < 1e9, "the number ", number(v[1]), " is out of range of a scale of ", old.scale);
  const auto shift = static_cast<int64_t>(steps), zero_point = old.zero_point - shift;
  Value out;
  if (zero_point >= least && zero_point <= most) {
    out = box(x.type(), x.values().clone(), per_tensor(old.scale, zero_point));
  } else {
    const bool is_low = zero_point < least;
    const int64_t bound = is_low ? least : most;
    const double scale = (is_low ? static_cast<double>(most - zero_point) : static_cast<double>(zero_point - least)) /
                         static_cast<double>(most - least) * old.scale;
    const auto moved = static_cast<float>(static_cast<double>(shift) * old.scale);
    out = map_bytes(x, per_tensor(scale, bound), [=](float y) { return y + moved; });
  }
  if (kRelu) out = map_bytes(bytes_of(out), bytes_of(out).quantizer(), relu);
  returns.push_back(out);
}
QUANTIZED_OP("quantized::add_scalar", &add_scalar<false>);
QUANTIZED_OP("quantized::add_scalar_relu", &add_scalar<true>);
QUANTIZED_OP("quantized::add.Scalar", &add_scalar<false>);

// --- concatenation

// Converts each tensor to the scale of the result, then joins the integers.
Value join(const Value& list, const Value& dim, const std::optional<Quantizer>& given, bool has_relu) {
  const auto& items = list.to_list()->items;
  const QuantizedTensor& first = bytes_of(items[0]);
  const Quantizer result = given.value_or(first.quantizer());
  std::vector<Tensor> values;
  for (const Value& item : items) {
    const QuantizedTensor& x = bytes_of(item);
    check(x.type() == first.type(), "expected tensors of one dtype, but got ", first.describe(), " and ", x.describe());
    const bool is_same = x.quantizer().scale == result.scale && x.quantizer().zero_point == result.zero_point;
    const auto same = [](float y) { return y; };
    values.push_back(
        is_same && !has_relu
            ? x.values()
            : bytes_of(map_bytes(x, result, has_relu ? std::function<float(float)>(relu) : same)).values());
  }
  return box(first.type(), ops::cat(values, dim.to_int()), result);
}

IMPL("aten::cat", ops::kQuantizedCPU,
     [](Arguments v, Returns& returns) { returns.push_back(join(v[0], v[1], std::nullopt, false)); });
template <bool kRelu>
void cat(Arguments v, Returns& returns) {
  std::optional<Quantizer> given;
  check(v[2].is_none() == v[3].is_none(), "expected a scale and a zero point, or neither");
  if (!v[2].is_none()) given = per_tensor(v[2], v[3]);
  returns.push_back(join(v[0], v[1], given, kRelu));
}
QUANTIZED_OP("quantized::cat", &cat<false>);
QUANTIZED_OP("quantized::cat_relu", &cat<true>);

}  // namespace
}  // namespace tensord::kernels
