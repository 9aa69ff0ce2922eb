// Operators that create quantized tensors and convert them back, query them, or move elements.
#include "kernels/quantized/tensors.h"

#include "core/ops/registry.h"

namespace tensord::kernels {

using ops::QuantizationScheme;
using ops::Value;

const QuantizedTensor& quantized_of(const Value& value) {
  const QuantizedTensor* found = ops::as_quantized(value);
  check(found != nullptr, "expected a quantized tensor, but got ",
        value.is_tensor() ? describe(value.to_tensor()) : std::string(value.tag_name()));
  return *found;
}

const QuantizedTensor& bytes_of(const Value& value) {
  const QuantizedTensor& x = quantized_of(value);
  if (x.type() == QuantizedType::kQInt32 || x.type() == QuantizedType::kQUInt4x2 || x.quantizer().is_per_channel())
    fail(ErrorCode::kUnimplemented, "is implemented for quint8 and qint8 with one scale, but got ", x.describe(),
         x.quantizer().is_per_channel() ? " with one for each channel" : "");
  return x;
}

Value box(QuantizedType type, Tensor values, Quantizer quantizer) {
  return Value(Tensor(make_intrusive<QuantizedTensor>(type, std::move(values), std::move(quantizer))));
}

Quantizer per_tensor(double scale, int64_t zero_point) {
  Quantizer out;
  out.scale = scale;
  out.zero_point = zero_point;
  return out;
}

Quantizer per_tensor(const Value& scale, const Value& zero_point) {
  const double number = scale.is_strided() ? scale.to_tensor().item_double() : ops::Unbox<double>::get(scale);
  return per_tensor(number, zero_point.is_strided() ? zero_point.to_tensor().item_int() : zero_point.to_int());
}

namespace {

// --- conversions

Value quantize(const Tensor& x, const Quantizer& quantizer, int64_t dtype) {
  check(dtype == 12 || dtype == 13 || dtype == 14, "expected qint8, quint8 or qint32, but got dtype ", dtype);
  const auto type = static_cast<QuantizedType>(dtype);
  return box(type, quantize_values(x, type, quantizer), quantizer);
}

OP("aten::quantize_per_tensor")
    .impl([](const Tensor& x, const Value& scale, const Value& zero_point, const Value& dtype) {
      return quantize(x, per_tensor(scale, zero_point), dtype.to_int());
    })
    .dynamic_shape()
    .constant_result();
OP("aten::quantize_per_tensor.tensor_qparams")
    .impl([](const Tensor& x, const Value& scale, const Value& zero_point, const Value& dtype) {
      return quantize(x, per_tensor(scale, zero_point), dtype.to_int());
    })
    .dynamic_shape()
    .constant_result();
OP("aten::quantize_per_channel")
    .impl([](const Tensor& x, const Tensor& scales, const Tensor& zero_points, int64_t axis, const Value& dtype) {
      Quantizer quantizer;
      quantizer.scheme = QuantizationScheme::kPerChannelAffine;
      quantizer.scales = scales.to(DType::kFloat64).contiguous();
      quantizer.zero_points = zero_points.to(DType::kInt64).contiguous();
      quantizer.axis = axis < 0 ? axis + x.ndim() : axis;
      // Checks the argument before using it.
      box(QuantizedType::kQInt32, Tensor::empty(x.sizes(), DType::kInt32), quantizer);
      return quantize(x, quantizer, dtype.to_int());
    })
    .dynamic_shape()
    .constant_result();
OP("aten::dequantize.self")
    .impl([](const Tensor& x) { return x.to(DType::kFloat32); })
    .dynamic_shape()
    .constant_result();
IMPL("aten::dequantize.self", ops::kQuantizedCPU, [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(dequantize_values(quantized_of(v[0])));
});

// --- queries

QUANTIZED_OP("aten::q_scale", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(bytes_of(v[0]).quantizer().scale);
});
QUANTIZED_OP("aten::q_zero_point", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(bytes_of(v[0]).quantizer().zero_point);
});
QUANTIZED_OP("aten::int_repr", [](std::span<const Value> v, std::vector<Value>& returns) {
  const QuantizedTensor& x = quantized_of(v[0]);
  check(x.type() != QuantizedType::kQUInt4x2, "the integers of ", x.describe(), " are not supported");
  returns.emplace_back(x.values().clone(true));
});
QUANTIZED_OP("aten::qscheme", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(static_cast<int64_t>(quantized_of(v[0]).quantizer().scheme));
});
const Quantizer& channels_of(const Value& value) {
  const Quantizer& quantizer = quantized_of(value).quantizer();
  check(quantizer.is_per_channel(), "expected a tensor with a scale for each channel");
  return quantizer;
}
QUANTIZED_OP("aten::q_per_channel_scales", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(channels_of(v[0]).scales.clone());
});
QUANTIZED_OP("aten::q_per_channel_zero_points", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(channels_of(v[0]).zero_points.clone());
});
QUANTIZED_OP("aten::q_per_channel_axis", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(channels_of(v[0]).axis);
});

IMPL("prim::is_quantized", ops::kQuantizedCPU,
     [](std::span<const Value>, std::vector<Value>& returns) { returns.emplace_back(true); });
IMPL("prim::dtype", ops::kQuantizedCPU, [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(static_cast<int64_t>(quantized_of(v[0]).type()));
});

// --- operators that query shapes or move elements, which work on the integers whatever they stand for

ops::ReturnFn on_values(const char* name) {
  return [name](std::span<const Value> v, std::vector<Value>& returns) {
    std::vector<Value> arguments(v.begin(), v.end());
    const QuantizedTensor& x = quantized_of(v[0]);
    check(x.type() != QuantizedType::kQUInt4x2, "is not implemented for ", x.describe());
    arguments[0] = x.values();
    const size_t first = returns.size();
    ops::run(ops::get_op(name), arguments, returns);
    for (size_t i = first; i < returns.size(); ++i) {
      if (returns[i].is_list() && returns[i].to_list()->element->kind() == ops::TypeKind::kTensor) {
        std::vector<Value> items;
        for (const Value& item : returns[i].to_list()->items)
          items.push_back(box(x.type(), item.to_tensor(), bytes_of(v[0]).quantizer()));
        returns[i] = ops::make_list(ops::tensor_type(), std::move(items));
      } else if (returns[i].is_strided()) {
        returns[i] = box(x.type(), returns[i].to_tensor(), bytes_of(v[0]).quantizer());
      }
    }
  };
}

[[maybe_unused]] const bool structural_ops = [] {
  for (const char* name : {"aten::size",
                           "aten::size.int",
                           "aten::dim",
                           "aten::numel",
                           "aten::len.Tensor",
                           "aten::stride",
                           "aten::is_contiguous",
                           "prim::device",
                           "prim::is_cuda",
                           "prim::requires_grad",
                           "aten::is_floating_point",
                           "aten::flatten.using_ints",
                           "aten::reshape",
                           "aten::view",
                           "aten::permute",
                           "aten::transpose.int",
                           "aten::t",
                           "aten::slice.Tensor",
                           "aten::select.int",
                           "aten::narrow",
                           "aten::unsqueeze",
                           "aten::squeeze",
                           "aten::squeeze.dim",
                           "aten::chunk",
                           "aten::split.Tensor",
                           "aten::split_with_sizes",
                           "aten::contiguous",
                           "aten::clone",
                           "aten::detach",
                           "aten::expand",
                           "aten::unflatten.int",
                           "aten::channel_shuffle",
                           "aten::pixel_shuffle"}) {
    ops::ImplBuilder(name, ops::kQuantizedCPU, on_values(name));
  }
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
