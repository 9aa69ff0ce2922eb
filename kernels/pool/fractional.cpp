// Fractional max pooling: windows of one size at pseudo-random places, which samples in 0 … 1 choose.
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "kernels/common/compose.h"

namespace tensord::kernels {
namespace {

using compose::call;
using ops::GradArgs;
using ops::IntList;

// Where windows begin along one dimension.
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

// Depth, height and width of a plane; depth is 1 in two dimensions.
struct Sizes {
  int64_t in[3], window[3], out[3];
};

template <class T>
void pool_plane(const Sizes& s, const int64_t* const starts[3], const T* x, T* values, int64_t* places) {
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
std::tuple<Tensor, Tensor> pool(const Tensor& given, const IntList& window, const IntList& output,
                                const Tensor& given_samples) {
  const std::string name = concat("fractional_max_pool", kDims, "d(): ");
  check(given.dtype() == DType::kFloat32 || given.dtype() == DType::kFloat64, name, "not implemented for ",
        name_of(given.dtype()));
  check(given_samples.dtype() == given.dtype(), "Expect _random_samples to have the same dtype as input");
  check(window.size() == kDims && output.size() == kDims, name, "kernel_size and output_size must have ", kDims,
        " numbers");
  check(given.ndim() == kDims + 1 || given.ndim() == kDims + 2, name, "Expected ", kDims + 1, "D or ", kDims + 2,
        "D tensor, but got: ", given.sizes());
  Sizes s{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  Dims sizes;
  int64_t planes = 1;
  for (int64_t d = 0; d < given.ndim() - kDims; ++d) planes *= given.size(d), sizes.push_back(given.size(d));
  for (int i = 0; i < kDims; ++i) {
    const int to = 3 - kDims + i;
    s.in[to] = given.size(i - kDims), s.window[to] = window[static_cast<size_t>(i)],
    s.out[to] = output[static_cast<size_t>(i)];
    check(s.window[to] > 0 && s.out[to] > 0, name, "kernel_size and output_size must be above 0");
    check(s.out[to] + s.window[to] - 1 <= s.in[to], name, "pool size ", s.window[to],
          " too large relative to input size ", s.in[to]);
    sizes.push_back(s.out[to]);
  }
  check(given_samples.ndim() == 3 && given_samples.size(0) * given_samples.size(1) == planes &&
            given_samples.size(2) == kDims,
        name, "Expect _random_samples to hold ", kDims, " numbers for each of ", planes, " planes, but got ",
        given_samples.sizes());
  if (given.is_meta()) return {Tensor::meta(sizes, given.dtype()), Tensor::meta(sizes, DType::kInt64)};
  const Tensor x = given.contiguous(), samples = given_samples.contiguous();
  const Tensor values = Tensor::empty(sizes, x.dtype()), places = Tensor::empty(sizes, DType::kInt64);
  const int64_t pixels = s.in[0] * s.in[1] * s.in[2], results = s.out[0] * s.out[1] * s.out[2];
  const auto run = [&]<class T>() {
    parallel_for(planes, 1, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> starts(static_cast<size_t>(s.out[0] + s.out[1] + s.out[2]), 0);
      int64_t* const by_dim[3] = {starts.data(), starts.data() + s.out[0], starts.data() + s.out[0] + s.out[1]};
      for (int64_t p = begin; p < end; ++p) {
        const T* own = samples.data<T>() + p * kDims;
        for (int i = 0; i < kDims; ++i) {
          const int to = 3 - kDims + i;
          // In two dimensions the first sample is of the width.
          starts_of(own[kDims == 2 ? 1 - i : i], s.in[to], s.out[to], s.window[to], by_dim[to]);
        }
        pool_plane<T>(s, by_dim, x.data<T>() + p * pixels, values.data<T>() + p * results,
                      places.data<int64_t>() + p * results);
      }
    });
  };
  x.dtype() == DType::kFloat32 ? run.template operator()<float>() : run.template operator()<double>();
  return {values, places};
}

// The gradient goes to where the values came from; windows may share a place.
template <int kDims>
Tensor pool_back(const Tensor& g, const Tensor& x, const IntList&, const IntList&, const Tensor& places) {
  check(g.sizes() == places.sizes(), "fractional_max_pool", kDims, "d_backward(): the gradient is of shape ", g.sizes(),
        ", the indices of ", places.sizes());
  const auto flat = [](const Tensor& t) { return call("aten::flatten.using_ints", t, -kDims, int64_t{-1}); };
  const Tensor zeros = call("aten::zeros_like", flat(x));
  return compose::reshape(call("aten::scatter_add", zeros, int64_t{-1}, flat(places), flat(g)), x.sizes());
}

#define FRACTIONAL(N)                                                                                              \
  OP("aten::fractional_max_pool" #N "d(Tensor self, int[" #N "] kernel_size, int[" #N                              \
     "] output_size, Tensor "                                                                                      \
     "random_samples) -> (Tensor, Tensor)")                                                                        \
      .direct(pool<N>)                                                                                             \
      .gradient([](const GradArgs& args) {                                                                         \
        std::vector<Tensor> out(4);                                                                                \
        if (args.grad_outputs[0] && args.needs(0)) {                                                               \
          out[0] =                                                                                                 \
              pool_back<N>(args.grad_outputs[0], args.inputs[0].to_tensor(), {}, {}, args.outputs[1].to_tensor()); \
        }                                                                                                          \
        return out;                                                                                                \
      })                                                                                                           \
      .saves("result1");                                                                                           \
  OP("aten::fractional_max_pool" #N "d_backward(Tensor grad_output, Tensor self, int[" #N "] kernel_size, int[" #N \
     "] "                                                                                                          \
     "output_size, Tensor indices) -> Tensor")                                                                     \
      .direct(pool_back<N>)                                                                                        \
      .composite()
FRACTIONAL(2);
FRACTIONAL(3);

}  // namespace
}  // namespace tensord::kernels
