#include "kernels/quantized/observe.h"

#include "kernels/quantized/product.h"

namespace tensord::kernels {

void choose_quantizers(const ObservedRanges& ranges, const Tensor& scales, const Tensor& zero_points) {
  const Tensor low = ranges.least.to(Device{}).contiguous(), high = ranges.greatest.to(Device{}).contiguous();
  const auto count = static_cast<size_t>(low.numel());
  for (size_t i = 0; i < count; ++i) {
    check(low.data<float>()[i] <= high.data<float>()[i],
          "In ChooseQuantizationParams, min should be less than or equal to max");
    const RowQuantizer chosen =
        choose_quantizer(low.data<float>()[i], high.data<float>()[i], static_cast<int32_t>(ranges.min),
                         static_cast<int32_t>(ranges.max), ranges.is_symmetric);
    check(chosen.scale > 0, "quantization scale should be > 0");
    scales.data<float>()[i] = chosen.scale;
    zero_points.data<int32_t>()[i] = chosen.zero_point;
  }
}

}  // namespace tensord::kernels
