// The loops of fractional max pooling.
#include "kernels/pool/fractional.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;

// The begins of the windows along one dimension.
template <class T>
void starts_of(T sample, int64_t input, int64_t output, int64_t window, int64_t* starts) {
  if (output > 1) {
    const T alpha = static_cast<T>(input - window) / static_cast<T>(output - 1);
    for (int64_t i = 0; i + 1 < output; ++i) {
      starts[i] = static_cast<int64_t>((static_cast<T>(i) + sample) * alpha) - static_cast<int64_t>(sample * alpha);
    }
  }
  if (output > 0) starts[output - 1] = input - window;
}

template <class T>
void pool_plane(const FractionalPool& s, const int64_t* const starts[3], const T* x, T* values, int64_t* places) {
  for (int64_t d = 0; d < s.out[0]; ++d) {
    for (int64_t h = 0; h < s.out[1]; ++h) {
      for (int64_t w = 0; w < s.out[2]; ++w) {
        const int64_t first[3] = {starts[0][d], starts[1][h], starts[2][w]};
        const auto place = [&](int64_t a, int64_t b, int64_t c) {
          return ((first[0] + a) * s.in[1] + first[1] + b) * s.in[2] + first[2] + c;
        };
        T max = -std::numeric_limits<T>::infinity();
        int64_t at = place(0, 0, 0);
        for (int64_t a = 0; a < s.window[0]; ++a) {
          for (int64_t b = 0; b < s.window[1]; ++b) {
            for (int64_t c = 0; c < s.window[2]; ++c) {
              const T value = x[place(a, b, c)];
              if (value > max || std::isnan(value)) max = value, at = place(a, b, c);
            }
          }
        }
        *values++ = max;
        *places++ = at;
      }
    }
  }
}

template <int kDims>
void pool(const KernelContext&, const Tensor& given, const IntList& window, const IntList& output,
          const Tensor& given_samples, Tensor& values, Tensor& places) {
  const FractionalPool s = make_fractional_pool(kDims, given, window, output, given_samples);
  const Tensor x = given.contiguous(), samples = given_samples.contiguous();
  const int64_t pixels = s.in[0] * s.in[1] * s.in[2], results = s.out[0] * s.out[1] * s.out[2];
  const auto run = [&]<class T>() {
    parallel_for(s.planes, 1, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> starts(static_cast<size_t>(s.out[0] + s.out[1] + s.out[2]), 0);
      int64_t* const by_dim[3] = {starts.data(), starts.data() + s.out[0], starts.data() + s.out[0] + s.out[1]};
      for (int64_t p = begin; p < end; ++p) {
        const T* own = samples.data<T>() + p * kDims;
        for (int i = 0; i < kDims; ++i) {
          const int to = 3 - kDims + i;
          // In two dimensions the first sample is for the width.
          starts_of(own[kDims == 2 ? 1 - i : i], s.in[to], s.out[to], s.window[to], by_dim[to]);
        }
        pool_plane<T>(s, by_dim, x.data<T>() + p * pixels, values.data<T>() + p * results,
                      places.data<int64_t>() + p * results);
      }
    });
  };
  x.dtype() == DType::kFloat32 ? run.template operator()<float>() : run.template operator()<double>();
}

IMPL("aten::fractional_max_pool2d", kCPU, pool<2>);
IMPL("aten::fractional_max_pool3d", kCPU, pool<3>);

}  // namespace
}  // namespace tensord::kernels
