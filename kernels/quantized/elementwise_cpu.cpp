// Sums and products of two quantized tensors.
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "kernels/quantized/bytes.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

// Whether two tensors have the same layout, so that a loop over their bytes is enough.
bool are_alike(const QuantizedTensor& a, const QuantizedTensor& b) {
  return a.sizes() == b.sizes() && a.values().strides() == b.values().strides() &&
         is_non_overlapping_and_dense(a.sizes(), a.values().strides());
}

// result = clamp(rint(function(qa, qb)) + zero). The function knows what the integers stand for. Tensors that are not
// dense in one order are copied first.
template <class Fn>
Value combine(const BytePair& pair, Fn&& function) {
  const QuantizedTensor &a = pair.a, &b = pair.b;
  check(a.type() == b.type(), "expected tensors of one dtype, but got ", a.describe(), " and ", b.describe());
  Tensor x = a.values(), y = b.values();
  if (!are_alike(a, b)) {
    const Dims sizes = broadcast_sizes(a.sizes(), b.sizes());
    x = ops::expand(x, sizes).contiguous();
    y = ops::expand(y, sizes).contiguous();
  }
  const Tensor out = Tensor::empty_strided(x.sizes(), x.strides(), x.dtype());
  const auto [least, most] = ops::range_of(a.type());
  const auto zero_point = static_cast<float>(pair.result.zero_point);
  const float low = pair.relu ? std::max(static_cast<float>(least), zero_point) : static_cast<float>(least);
  const auto high = static_cast<float>(most);
  const auto run = [&]<class T>(const T* p, const T* q, T* to) {
    parallel_for_cost(out.numel(), 1.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float r = std::nearbyint(function(static_cast<float>(p[i]), static_cast<float>(q[i]))) + zero_point;
        r = r > low ? r : low;
        r = r < high ? r : high;
        to[i] = static_cast<T>(static_cast<int32_t>(r));
      }
    });
  };
  if (x.dtype() == DType::kUInt8)
    run(x.data<uint8_t>(), y.data<uint8_t>(), out.data<uint8_t>());
  else
    run(x.data<int8_t>(), y.data<int8_t>(), out.data<int8_t>());
  return box(a.type(), out, pair.result);
}

// The number that each of the 256 integers stands for, by its lowest eight bits.
class Meanings {
 public:
  explicit Meanings(const QuantizedTensor& x) {
    const Dequantizer dequantize(x.quantizer());
    const auto [least, most] = ops::range_of(x.type());
    for (int64_t q = least; q <= most; ++q) table_[static_cast<uint8_t>(q)] = dequantize(static_cast<float>(q));
  }
  float operator()(float q) const { return table_[static_cast<uint8_t>(static_cast<int32_t>(q))]; }

 private:
  float table_[256];
};

}  // namespace

Value add_bytes(const BytePair& pair) {
  const Meanings a(pair.a), b(pair.b);
  const float inverse = 1.0f / static_cast<float>(pair.result.scale);
  return combine(pair, [&](float x, float y) { return (a(x) + b(y)) * inverse; });
}

Value mul_bytes(const BytePair& pair) {
  const auto a = static_cast<float>(pair.a.quantizer().scale), b = static_cast<float>(pair.b.quantizer().scale);
  const float by = a * b * (1.0f / static_cast<float>(pair.result.scale));
  const auto zero_a = static_cast<float>(pair.a.quantizer().zero_point),
             zero_b = static_cast<float>(pair.b.quantizer().zero_point);
  return combine(pair, [=](float x, float y) { return (x - zero_a) * (y - zero_b) * by; });
}

}  // namespace tensord::kernels
