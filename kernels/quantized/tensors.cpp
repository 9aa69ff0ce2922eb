// Making quantised tensors of others and back, what they say of themselves, and operators that move numbers about.
#include "kernels/quantized/tensors.h"

#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/registry.h"
#include "core/tensor/strided_copy.h"
#include "kernels/quantized/product.h"

namespace tensord::kernels {

using ops::QuantizationScheme;
using ops::Value;

const QuantizedTensor& quantized_of(const Value& value) {
  const QuantizedTensor* found = ops::as_quantized(value);
  check(found != nullptr, "expected a quantised tensor, but got ",
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
  return Value(
      IntrusivePtr<ops::OpaqueObject>(make_intrusive<QuantizedTensor>(type, std::move(values), std::move(quantizer))));
}

Quantizer per_tensor(double scale, int64_t zero_point) {
  Quantizer out;
  out.scale = scale;
  out.zero_point = zero_point;
  return out;
}

Quantizer per_tensor(const Value& scale, const Value& zero_point) {
  const double number = scale.is_tensor() ? scale.to_tensor().item_double() : ops::Unbox<double>::get(scale);
  return per_tensor(number, zero_point.is_tensor() ? zero_point.to_tensor().item_int() : zero_point.to_int());
}

namespace {

// Calls fn(i, channel) for the elements of a row-major tensor, from several threads.
template <class Fn>
void for_each_channel(const Dims& sizes, const Quantizer& quantizer, Fn&& fn) {
  int64_t inner = 1, count = 1;
  for (const int64_t size : sizes) count *= size;
  if (quantizer.is_per_channel()) {
    for (size_t d = static_cast<size_t>(quantizer.axis) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
  const int64_t channels = quantizer.is_per_channel() ? sizes[static_cast<size_t>(quantizer.axis)] : 1;
  parallel_for_cost(count, 1.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i, quantizer.is_per_channel() ? i / inner % channels : 0);
  });
}

template <class T>
void quantize_as(const float* x, T* out, const Dims& sizes, const Quantizer& quantizer, QuantizedType type) {
  const auto [least, most] = ops::range_of(type);
  const auto low = static_cast<double>(least), high = static_cast<double>(most);
  if (!quantizer.is_per_channel()) {
    const float inverse = 1.0f / static_cast<float>(quantizer.scale);
    const auto zero_point = static_cast<double>(quantizer.zero_point);
    for_each_channel(sizes, quantizer, [&](int64_t i, int64_t) {
      const double y = static_cast<double>(std::nearbyint(x[i] * inverse)) + zero_point;
      out[i] = static_cast<T>(y > low ? (y < high ? y : high) : low);
    });
    return;
  }
  for_each_channel(sizes, quantizer, [&](int64_t i, int64_t channel) {
    const float inverse = 1.0f / static_cast<float>(quantizer.scale_at(channel));
    const double y =
        static_cast<double>(std::nearbyint(x[i] * inverse)) + static_cast<double>(quantizer.zero_point_at(channel));
    out[i] = static_cast<T>(y > low ? (y < high ? y : high) : low);
  });
}

// With a scale for each channel PyTorch rounds once, from double.
template <class T>
void dequantize_as(const T* x, float* out, const Dims& sizes, const Quantizer& quantizer) {
  const auto scale = static_cast<float>(quantizer.scale);
  for_each_channel(sizes, quantizer, [&](int64_t i, int64_t channel) {
    const int64_t steps = static_cast<int64_t>(x[i]) - quantizer.zero_point_at(channel);
    out[i] = quantizer.is_per_channel() ? static_cast<float>(static_cast<double>(steps) * quantizer.scale_at(channel))
                                        : static_cast<float>(steps) * scale;
  });
}

bool is_dense(const Tensor& x) { return is_non_overlapping_and_dense(x.sizes(), x.strides()); }

}  // namespace

Tensor quantize_values(const Tensor& x, QuantizedType type, const Quantizer& quantizer) {
  check(x.dtype() == DType::kFloat32, "expected float32 to quantise, but got ", name_of(x.dtype()));
  check(type != QuantizedType::kQUInt4x2, "quantising to quint4x2 is not supported");
  const bool keeps_order = !quantizer.is_per_channel() && is_dense(x);
  const Tensor source = keeps_order ? x : x.contiguous();
  const Tensor out = Tensor::empty_strided(source.sizes(), source.strides(), ops::storage_dtype(type));
  const float* from = source.data<float>();
  switch (out.dtype()) {
    case DType::kInt8: quantize_as(from, out.data<int8_t>(), x.sizes(), quantizer, type); break;
    case DType::kUInt8:
      if (quantizer.is_per_channel()) {
        quantize_as(from, out.data<uint8_t>(), x.sizes(), quantizer, type);
      } else {
        quantize_bytes({static_cast<float>(quantizer.scale), static_cast<int32_t>(quantizer.zero_point)}, from,
                       x.numel(), out.data<uint8_t>());
      }
      break;
    default: quantize_as(from, out.data<int32_t>(), x.sizes(), quantizer, type); break;
  }
  return out;
}

Tensor dequantize_values(const QuantizedTensor& x) {
  if (x.type() == QuantizedType::kQUInt4x2 || x.quantizer().scheme == QuantizationScheme::kPerChannelFloatQParams)
    fail(ErrorCode::kUnimplemented, "dequantising ", x.describe(), " is not supported but by embeddings");
  const bool keeps_order = !x.quantizer().is_per_channel() && is_dense(x.values());
  const Tensor source = keeps_order ? x.values() : x.values().contiguous();
  const Tensor out = Tensor::empty_strided(source.sizes(), source.strides(), DType::kFloat32);
  float* to = out.data<float>();
  switch (source.dtype()) {
    case DType::kInt8: dequantize_as(source.data<int8_t>(), to, x.sizes(), x.quantizer()); break;
    case DType::kUInt8: dequantize_as(source.data<uint8_t>(), to, x.sizes(), x.quantizer()); break;
    default: dequantize_as(source.data<int32_t>(), to, x.sizes(), x.quantizer()); break;
  }
  return out;
}

Value map_bytes(const QuantizedTensor& x, const Quantizer& result, const std::function<float(float)>& function) {
  const auto [least, most] = ops::range_of(x.type());
  const float inverse = 1.0f / static_cast<float>(result.scale);
  const Dequantizer dequantize(x.quantizer());
  uint8_t table[256];
  for (int64_t q = least; q <= most; ++q) {
    const float y = function(dequantize(static_cast<float>(q)));
    const double rounded = static_cast<double>(std::nearbyint(y * inverse)) + static_cast<double>(result.zero_point);
    const auto low = static_cast<double>(least), high = static_cast<double>(most);
    const double bounded = rounded > low ? (rounded < high ? rounded : high) : low;  // NaN: the least
    table[static_cast<uint8_t>(q)] = static_cast<uint8_t>(static_cast<int64_t>(bounded));
  }
  const Tensor source = is_dense(x.values()) ? x.values() : x.values().contiguous();
  const Tensor out = Tensor::empty_strided(source.sizes(), source.strides(), source.dtype());
  const auto* from = static_cast<const uint8_t*>(source.raw_data());
  auto* to = static_cast<uint8_t*>(out.raw_data());
  parallel_for_cost(out.numel(), 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = table[from[i]];
  });
  return box(x.type(), out, result);
}

namespace {

// --- to and from

Value quantize(const Tensor& x, const Quantizer& quantizer, int64_t dtype) {
  check(dtype == 12 || dtype == 13 || dtype == 14, "expected qint8, quint8 or qint32, but got dtype ", dtype);
  const auto type = static_cast<QuantizedType>(dtype);
  return box(type, quantize_values(x, type, quantizer), quantizer);
}

OP("aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor")
    .direct([](const Tensor& x, const Value& scale, const Value& zero_point, const Value& dtype) {
      return quantize(x, per_tensor(scale, zero_point), dtype.to_int());
    })
    .dynamic_shape()
    .constant_result();
OP("aten::quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor")
    .direct([](const Tensor& x, const Value& scale, const Value& zero_point, const Value& dtype) {
      return quantize(x, per_tensor(scale, zero_point), dtype.to_int());
    })
    .dynamic_shape()
    .constant_result();
OP("aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor")
    .direct([](const Tensor& x, const Tensor& scales, const Tensor& zero_points, int64_t axis, const Value& dtype) {
      Quantizer quantizer;
      quantizer.scheme = QuantizationScheme::kPerChannelAffine;
      quantizer.scales = scales.to(DType::kFloat64).contiguous();
      quantizer.zero_points = zero_points.to(DType::kInt64).contiguous();
      quantizer.axis = axis < 0 ? axis + x.ndim() : axis;
      // Checked before it is used.
      box(QuantizedType::kQInt32, Tensor::empty(x.sizes(), DType::kInt32), quantizer);
      return quantize(x, quantizer, dtype.to_int());
    })
    .dynamic_shape()
    .constant_result();
OP("aten::dequantize.self(Tensor self) -> Tensor")
    .direct([](const Tensor& x) { return x.to(DType::kFloat32); })
    .dynamic_shape()
    .constant_result();
QUANTIZED("aten::dequantize.self").direct([](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(dequantize_values(quantized_of(v[0])));
});

// --- what they say of themselves

QUANTIZED_OP("aten::q_scale(Tensor self) -> float", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(bytes_of(v[0]).quantizer().scale);
});
QUANTIZED_OP("aten::q_zero_point(Tensor self) -> int", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(bytes_of(v[0]).quantizer().zero_point);
});
QUANTIZED_OP("aten::int_repr(Tensor self) -> Tensor", [](std::span<const Value> v, std::vector<Value>& returns) {
  const QuantizedTensor& x = quantized_of(v[0]);
  check(x.type() != QuantizedType::kQUInt4x2, "the integers of ", x.describe(), " are not supported");
  returns.emplace_back(x.values().clone(true));
});
QUANTIZED_OP("aten::qscheme(Tensor self) -> int", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(static_cast<int64_t>(quantized_of(v[0]).quantizer().scheme));
});
const Quantizer& channels_of(const Value& value) {
  const Quantizer& quantizer = quantized_of(value).quantizer();
  check(quantizer.is_per_channel(), "expected a tensor with a scale for each channel");
  return quantizer;
}
QUANTIZED_OP("aten::q_per_channel_scales(Tensor self) -> Tensor",
             [](std::span<const Value> v, std::vector<Value>& returns) {
               returns.emplace_back(channels_of(v[0]).scales.clone());
             });
QUANTIZED_OP("aten::q_per_channel_zero_points(Tensor self) -> Tensor",
             [](std::span<const Value> v, std::vector<Value>& returns) {
               returns.emplace_back(channels_of(v[0]).zero_points.clone());
             });
QUANTIZED_OP("aten::q_per_channel_axis(Tensor self) -> int", [](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(channels_of(v[0]).axis);
});

QUANTIZED("prim::is_quantized").direct([](std::span<const Value>, std::vector<Value>& returns) {
  returns.emplace_back(true);
});
QUANTIZED("prim::dtype").direct([](std::span<const Value> v, std::vector<Value>& returns) {
  returns.emplace_back(static_cast<int64_t>(quantized_of(v[0]).type()));
});

// --- what asks for shapes and moves numbers about, whatever they stand for: done on the integers

ops::DirectFn on_values(const char* name) {
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
      } else if (returns[i].is_tensor()) {
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
    ops::BoxedBuilder(ops::BoxedKind::kQuantized, name).direct(on_values(name));
  }
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
