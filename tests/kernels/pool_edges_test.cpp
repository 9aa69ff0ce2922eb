// Pooling windows at the edges of images, with numbers of channels around every block, in both memory formats, compared
// with plain loops; gradients by the sums that they must have.
#include <cmath>
#include <limits>

#include "tests/support/operator_rows.h"

namespace tensord::pool_edges_test {
namespace {

using namespace testing_rows;

struct Window {
  int64_t kernel, stride, padding, dilation;
  bool ceil_mode = false;
};
constexpr Window kWindows[] = {{1, 1, 0, 1},       {2, 2, 0, 1},       {2, 2, 1, 1},       {3, 2, 1, 1}, {3, 1, 1, 2},
                               {3, 2, 0, 1, true}, {2, 3, 1, 1, true}, {3, 3, 1, 1, true}, {2, 1, 0, 3}};

Tensor picture(int64_t batch, int64_t channels, int64_t height, int64_t width, DType dtype = DType::kFloat32) {
  const Tensor out = Tensor::empty(Dims{batch, channels, height, width}, DType::kFloat32);
  uint32_t state = 7;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525 + 1013904223;
    out.data<float>()[i] = static_cast<float>(static_cast<int>(state >> 24) % 7 - 3);
  }
  return out.to(dtype);
}
Tensor channels_last(const Tensor& x) { return run("aten::contiguous", {x, int64_t{2}}).to_tensor(); }

// As in PyTorch, a window that starts in the padding after the image is omitted.
int64_t results(int64_t in, const Window& w) {
  const int64_t reach = w.dilation * (w.kernel - 1) + 1, room = in + 2 * w.padding - reach;
  int64_t out = (w.ceil_mode ? room + w.stride - 1 : room) / w.stride + 1;
  if (w.ceil_mode && (out - 1) * w.stride >= in + w.padding) --out;
  return out;
}

// Calls fn(values of the window inside the image, their positions) for each result.
template <class Fn>
std::vector<double> pooled(const Tensor& given, const Window& w, Fn&& fn) {
  const Tensor x = given.to(DType::kFloat64).contiguous();
  const Dims& s = x.sizes();
  const int64_t height = results(s[2], w), width = results(s[3], w);
  std::vector<double> out;
  for (int64_t plane = 0; plane < s[0] * s[1]; ++plane) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t z = 0; z < width; ++z) {
        std::vector<double> values;
        std::vector<int64_t> places;
        int64_t with_padding = 0;
        for (int64_t a = 0; a < w.kernel; ++a) {
          for (int64_t b = 0; b < w.kernel; ++b) {
            const int64_t row = y * w.stride - w.padding + a * w.dilation,
                          column = z * w.stride - w.padding + b * w.dilation;
            with_padding += row < s[2] + w.padding && column < s[3] + w.padding;
            if (row < 0 || row >= s[2] || column < 0 || column >= s[3]) continue;
            values.push_back(x.data<double>()[(plane * s[2] + row) * s[3] + column]);
            places.push_back(row * s[3] + column);
          }
        }
        out.push_back(fn(values, places, with_padding));
      }
    }
  }
  return out;
}
double largest(const std::vector<double>& values, size_t* at = nullptr) {
  double best = -std::numeric_limits<double>::infinity();
  size_t place = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > best || std::isnan(values[i])) best = values[i], place = i;
  }
  if (at) *at = place;
  return best;
}

void expect_same(const Tensor& got, const std::vector<double>& expected, double tolerance = 0) {
  const Tensor dense = got.to(DType::kFloat64).contiguous();
  ASSERT_EQ(dense.numel(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double x = dense.data<double>()[i];
    ASSERT_TRUE(x == expected[i] || std::abs(x - expected[i]) <= tolerance ||
                (std::isnan(x) && std::isnan(expected[i])))
        << "element " << i << " is " << x << ", expected " << expected[i];
  }
}

std::vector<Value> with(const Tensor& x, const Window& w) {
  return {x, ints({w.kernel, w.kernel}), ints({w.stride, w.stride}), ints({w.padding, w.padding})};
}
std::vector<Value> max_arguments(const Tensor& x, const Window& w) {
  std::vector<Value> out = with(x, w);
  out.insert(out.end(), {ints({w.dilation, w.dilation}), w.ceil_mode});
  return out;
}

template <class Fn>
void for_each_picture(Fn&& fn) {
  for (const int64_t channels : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129, 513}) {
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{7, 6}, {5, 21}, {1, 9}, {12, 1}}) {
      if (channels > 65 && width > 9) continue;
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        if (dtype == DType::kFloat64 && channels > 17) continue;
        const Tensor x = picture(channels < 20 ? 2 : 1, channels, height, width, dtype);
        for (const Tensor& laid : {x, channels_last(x)}) {
          for (const Window& w : kWindows) {
            const int64_t reach = w.dilation * (w.kernel - 1) + 1;
            if (reach > std::min(height, width) + 2 * w.padding) continue;
            SCOPED_TRACE(concat(to_string(x.sizes()), " kernel ", w.kernel, " stride ", w.stride, " padding ",
                                w.padding, " dilation ", w.dilation, w.ceil_mode ? " ceil" : "",
                                laid.is_contiguous() ? "" : " channels last"));
            fn(laid, w);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(PoolEdges, Maxima) {
  for_each_picture([](const Tensor& x, const Window& w) {
    expect_same(run("aten::max_pool2d", max_arguments(x, w)).to_tensor(),
                pooled(x, w, [](const auto& values, const auto&, int64_t) { return largest(values); }));
    const ops::Op& op = ops::get_op("aten::max_pool2d_with_indices");
    const std::vector<Value> both = ops::run(op, ops::bind(op, max_arguments(x, w)));
    // The first of equal ones.
    expect_same(both[1].to_tensor(), pooled(x, w, [](const auto& values, const auto& places, int64_t) {
                  size_t at = 0;
                  largest(values, &at);
                  return static_cast<double>(places[at]);
                }));
    std::vector<Value> backward{ones(both[0].to_tensor().sizes(), x.dtype())};
    const std::vector<Value> rest = max_arguments(x, w);
    backward.insert(backward.end(), rest.begin(), rest.end());
    backward.push_back(both[1]);
    const Tensor g = run("aten::max_pool2d_with_indices_backward", backward).to_tensor();
    // Each pixel as often as it is the position of a maximum.
    std::vector<double> expected(static_cast<size_t>(x.numel()));
    const Tensor places = both[1].to_tensor().contiguous();
    const int64_t plane = x.sizes()[2] * x.sizes()[3], each = places.sizes()[2] * places.sizes()[3];
    for (int64_t i = 0; i < places.numel(); ++i)
      ++expected[static_cast<size_t>(i / each * plane + places.data<int64_t>()[i])];
    expect_same(g, expected);
  });
}

TEST(PoolEdges, Means) {
  for_each_picture([](const Tensor& x, const Window& w) {
    if (w.dilation != 1) return;
    for (const bool counts_padding : {true, false}) {
      for (const int64_t divisor : {0, 5}) {
        std::vector<Value> arguments = with(x, w);
        arguments.insert(arguments.end(), {w.ceil_mode, counts_padding, divisor ? Value(divisor) : Value()});
        const auto share = [&](const auto& values, int64_t with_padding) {
          return static_cast<double>(divisor          ? divisor
                                     : counts_padding ? with_padding
                                                      : static_cast<int64_t>(values.size()));
        };
        const Tensor y = run("aten::avg_pool2d", arguments).to_tensor();
        expect_same(y,
                    pooled(x, w,
                           [&](const auto& values, const auto&, int64_t with_padding) {
                             double sum = 0;
                             for (const double v : values) sum += v;
                             return sum / share(values, with_padding);
                           }),
                    1e-5);
        // Each result spreads over its window.
        std::vector<double> expected(static_cast<size_t>(x.numel()));
        int64_t at = 0;
        const int64_t plane = x.sizes()[2] * x.sizes()[3], each = y.sizes()[2] * y.sizes()[3];
        pooled(x, w, [&](const auto& values, const auto& places, int64_t with_padding) {
          for (const int64_t place : places)
            expected[static_cast<size_t>(at / each * plane + place)] +=
                static_cast<double>(at % 5) / share(values, with_padding);
          ++at;
          return 0.0;
        });
        const Tensor g = Tensor::empty(y.sizes(), DType::kFloat32);
        for (int64_t i = 0; i < g.numel(); ++i) g.data<float>()[i] = static_cast<float>(i % 5);
        std::vector<Value> backward{g.to(x.dtype())};
        backward.insert(backward.end(), arguments.begin(), arguments.end());
        expect_same(run("aten::avg_pool2d_backward", backward).to_tensor(), expected, 1e-5);
      }
    }
  });
}

TEST(PoolEdges, WindowsThatFitTheResult) {
  for (const int64_t channels : {1, 8, 17, 64, 65, 513}) {
    const Tensor x = picture(1, channels, 7, 5);
    for (const Tensor& laid : {x, channels_last(x)}) {
      for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {7, 5}, {9, 6}, {0, 2}}) {
        SCOPED_TRACE(concat(channels, " to ", height, "x", width));
        const auto part = [](int64_t i, int64_t in, int64_t out) {
          return std::pair(i * in / out, ((i + 1) * in + out - 1) / out);
        };
        std::vector<double> means, max;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t y = 0; y < height; ++y) {
            for (int64_t z = 0; z < width; ++z) {
              const auto [top, bottom] = part(y, 7, height);
              const auto [left, right] = part(z, 5, width);
              std::vector<double> values;
              for (int64_t i = top; i < bottom; ++i) {
                for (int64_t k = left; k < right; ++k) values.push_back(x.data<float>()[(c * 7 + i) * 5 + k]);
              }
              double sum = 0;
              for (const double v : values) sum += v;
              means.push_back(sum / static_cast<double>(values.size()));
              max.push_back(largest(values));
            }
          }
        }
        expect_same(run("aten::adaptive_avg_pool2d", {laid, ints({height, width})}).to_tensor(), means, 1e-5);
        expect_same(run("aten::adaptive_max_pool2d", {laid, ints({height, width})}).to_tensor(), max);
      }
    }
  }
}

TEST(PoolEdges, NanIsTheLargest) {
  for (const int64_t channels : {1, 16, 65}) {
    const Tensor x = picture(1, channels, 6, 6);
    x.data<float>()[14] = std::numeric_limits<float>::quiet_NaN();
    for (const Tensor& laid : {x, channels_last(x)}) {
      for (const Window& w : kWindows) {
        expect_same(run("aten::max_pool2d", max_arguments(laid, w)).to_tensor(),
                    pooled(laid, w, [](const auto& values, const auto&, int64_t) {
                      for (const double v : values) {
                        if (std::isnan(v)) return v;
                      }
                      return largest(values);
                    }));
      }
    }
  }
}

}  // namespace
}  // namespace tensord::pool_edges_test
