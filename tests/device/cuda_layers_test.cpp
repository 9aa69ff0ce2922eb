// Layers on CUDA's devices, with their gradients: shapes, orders in memory and dtypes that are drawn give what they
// give on the host. With TENSORD_CUDA naming the emulated devices' library.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "core/tensor/cuda/runtime.h"

namespace tensord::cuda_layers_test {
namespace {

using ops::Value;

constexpr Device kGpu{kCUDA, 0};

class CudaLayers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() > 0) return;
    const char* const named = std::getenv("TENSORD_CUDA");
    if (named && *named) FAIL() << cuda::why_no_devices();
    GTEST_SKIP() << cuda::why_no_devices();
  }
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin() { return number(0, 1) == 1; }
  Dims numbers(size_t count, int64_t low, int64_t high) {
    Dims out(count, 0);
    for (size_t i = 0; i < count; ++i) out[i] = number(low, high);
    return out;
  }
  DType dtype() {
    constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16};
    return kAll[number(0, 3)];
  }
  // Dense, with channels last, or a part of a larger tensor.
  Tensor tensor(const Dims& sizes, DType dtype) {
    const int64_t order = number(0, 2);
    Dims strides = contiguous_strides(sizes);
    if (order == 1 && sizes.size() >= 4) strides = channels_last_strides(sizes);
    if (order == 2) {
      for (size_t d = 0; d < strides.size(); ++d) strides[d] *= 2;
    }
    const Tensor wide = Tensor::empty(sizes, DType::kFloat64), out = Tensor::empty_strided(sizes, strides, dtype);
    for (int64_t i = 0; i < wide.numel(); ++i) wide.data<double>()[i] = static_cast<double>(number(-64, 64)) / 32;
    out.copy_from(wide);
    return out;
  }
  Tensor labels(const Dims& sizes, int64_t classes, int64_t ignored) {
    const Tensor out = Tensor::empty(sizes, DType::kInt64);
    for (int64_t i = 0; i < out.numel(); ++i)
      out.data<int64_t>()[i] = number(0, 5) == 0 ? ignored : number(0, classes - 1);
    return out;
  }

 private:
  std::mt19937 random_;
};

// `t` on the device, in the same order.
Tensor on(const Tensor& t, Device device) {
  const Tensor out = Tensor::empty_strided(t.sizes(), t.strides(), t.dtype(), device);
  out.copy_from(t);
  return out;
}

// All results, what running statistics became, and all gradients, or the message of an error.
struct Outcome {
  std::vector<Tensor> tensors;
  std::string error;
};
Outcome outcome_on(const std::string& name, const std::vector<Value>& arguments, const std::vector<size_t>& leaves_at,
                   Device device) {
  Outcome out;
  std::vector<Value> own = arguments;
  std::vector<Tensor> leaves, roots, grads;
  for (Value& value : own) {
    if (value.is_tensor()) value = on(value.to_tensor(), device);
  }
  for (const size_t i : leaves_at) {
    autograd::set_requires_grad(own[i].to_tensor());
    leaves.push_back(own[i].to_tensor());
  }
  try {
    const ops::Op& op = ops::get_op(name);
    for (const Value& result : ops::run(op, ops::bind(op, own))) {
      const Tensor& root = result.to_tensor();
      out.tensors.push_back(root.to(Device{}));
      if (!autograd::requires_grad(root)) continue;
      const Tensor weights = Tensor::empty(root.sizes(), DType::kFloat64);
      for (int64_t i = 0; i < weights.numel(); ++i) weights.data<double>()[i] = static_cast<double>(i % 5) - 1.5;
      roots.push_back(root);
      grads.push_back(weights.to(root.dtype()).to(device));
    }
    for (const Tensor& gradient : autograd::grad(roots, leaves, grads, {}, true))
      out.tensors.push_back(gradient.defined() ? gradient.to(Device{}) : Tensor());
    for (const Value& value : own) {
      if (value.is_tensor()) out.tensors.push_back(value.to_tensor().to(Device{}));
    }
  } catch (const Error& error) {
    out.error = error.what();
  }
  return out;
}

void expect_as_on_host(const std::string& name, const std::vector<Value>& arguments,
                       const std::vector<size_t>& leaves_at, DType dtype) {
  const Outcome expected = outcome_on(name, arguments, leaves_at, Device{}),
                got = outcome_on(name, arguments, leaves_at, kGpu);
  ASSERT_EQ(got.error, expected.error) << name;
  ASSERT_EQ(got.tensors.size(), expected.tensors.size()) << name;
  const double most = dtype == DType::kFloat64    ? 1e-10
                      : dtype == DType::kFloat32  ? 2e-5
                      : dtype == DType::kBFloat16 ? 2e-2
                                                  : 2e-3;
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    if (!expected.tensors[i].defined()) continue;
    ASSERT_EQ(got.tensors[i].sizes(), expected.tensors[i].sizes()) << name << ", " << i;
    ASSERT_EQ(got.tensors[i].dtype(), expected.tensors[i].dtype()) << name << ", " << i;
    const auto wide = [](const Tensor& t) { return t.to(DType::kFloat64).contiguous(); };
    const Tensor a = wide(got.tensors[i]), b = wide(expected.tensors[i]);
    double scale = 1;
    for (int64_t k = 0; k < b.numel(); ++k) {
      if (std::isfinite(b.data<double>()[k])) scale = std::max(scale, std::abs(b.data<double>()[k]));
    }
    for (int64_t k = 0; k < a.numel(); ++k) {
      const double x = a.data<double>()[k], y = b.data<double>()[k];
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= most * scale)
          << name << ", " << i << ", " << k << ": " << x << " for " << y << " of " << describe(expected.tensors[i]);
    }
  }
}

Value ints(const Dims& numbers) { return ops::make_int_list(numbers); }

TEST_F(CudaLayers, Convolutions) {
  Draw draw(1);
  for (int run = 0; run < 120; ++run) {
    const auto spatial = static_cast<size_t>(draw.number(1, 3));
    const DType dtype = draw.dtype();
    const bool is_transposed = draw.coin();
    const int64_t groups = draw.number(1, 3), in = groups * draw.number(1, 4), out = groups * draw.number(1, 12);
    const Dims kernel = draw.numbers(spatial, 1, 3), stride = draw.numbers(spatial, 1, 3),
               dilation = draw.numbers(spatial, 1, 2), padding = draw.numbers(spatial, 0, 2);
    Dims x{draw.number(0, 3), in}, weight{is_transposed ? in : out, (is_transposed ? out : in) / groups},
        more(spatial, 0);
    for (size_t d = 0; d < spatial; ++d) {
      x.push_back(draw.number(spatial == 1 ? 5 : 4, spatial == 1 ? 700 : spatial == 2 ? 12 : 6));
      weight.push_back(kernel[d]);
      if (is_transposed) more[d] = draw.number(0, std::max(stride[d], dilation[d]) - 1);
    }
    if (draw.number(0, 4) == 0) x = Dims(x.span().subspan(1));  // no batch
    const Value bias = draw.coin() ? Value(draw.tensor({out}, dtype)) : Value();
    std::vector<size_t> leaves{0, 1};
    if (bias.is_tensor()) leaves.push_back(2);
    expect_as_on_host("aten::convolution",
                      {draw.tensor(x, dtype), draw.tensor(weight, dtype), bias, ints(stride), ints(padding),
                       ints(dilation), is_transposed, ints(more), groups},
                      leaves, dtype);
  }
}

TEST_F(CudaLayers, Pools) {
  Draw draw(2);
  for (int run = 0; run < 120; ++run) {
    const auto spatial = static_cast<size_t>(draw.number(1, 3));
    const std::string dims = std::to_string(spatial) + "d";
    const DType dtype = draw.dtype();
    const Dims kernel = draw.numbers(spatial, 1, 3), stride = draw.numbers(spatial, 1, 3);
    Dims sizes = draw.coin() ? Dims{draw.number(0, 2), draw.number(1, 5)} : Dims{draw.number(1, 5)}, padding;
    for (size_t d = 0; d < spatial; ++d) {
      sizes.push_back(draw.number(6, 11));
      padding.push_back(draw.number(0, kernel[d] / 2));
    }
    const Tensor x = draw.tensor(sizes, dtype);
    const Value ceil = draw.coin(), counts = draw.coin();
    switch (draw.number(0, 3)) {
      case 0:
        expect_as_on_host("aten::max_pool" + dims + "_with_indices",
                          {x, ints(kernel), ints(stride), ints(padding), ints(draw.numbers(spatial, 1, 2)), ceil}, {0},
                          dtype);
        break;
      case 1:
        expect_as_on_host("aten::avg_pool" + dims, {x, ints(kernel), ints(stride), ints(padding), ceil, counts}, {0},
                          dtype);
        break;
      case 2:
        expect_as_on_host("aten::adaptive_avg_pool" + dims, {x, ints(draw.numbers(spatial, 1, 13))}, {0}, dtype);
        break;
      default: expect_as_on_host("aten::adaptive_max_pool" + dims, {x, ints(draw.numbers(spatial, 1, 13))}, {0}, dtype);
    }
  }
}

TEST_F(CudaLayers, Resampling) {
  Draw draw(3);
  const char* const kNames[][2] = {{"aten::upsample_nearest1d", "aten::upsample_linear1d"},
                                   {"aten::upsample_bilinear2d", "aten::upsample_bicubic2d"},
                                   {"aten::_upsample_nearest_exact3d", "aten::upsample_trilinear3d"},
                                   {"aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa"}};
  for (int run = 0; run < 80; ++run) {
    const int64_t kind = draw.number(0, 3), which = draw.number(0, 1);
    const auto spatial = static_cast<size_t>(kind == 3 ? 2 : kind + 1);
    const DType dtype = draw.coin() ? DType::kFloat32 : DType::kFloat64;
    Dims sizes{draw.number(1, 2), draw.number(1, 5)};
    for (size_t d = 0; d < spatial; ++d) sizes.push_back(draw.number(1, 8));
    const std::string name = kNames[kind][which];
    std::vector<Value> arguments{draw.tensor(sizes, dtype), ints(draw.numbers(spatial, 1, 13))};
    if (name.find("nearest") == std::string::npos) arguments.emplace_back(draw.coin());
    expect_as_on_host(name, arguments, {0}, dtype);
  }
}

TEST_F(CudaLayers, Normalization) {
  Draw draw(4);
  for (int run = 0; run < 100; ++run) {
    const DType dtype = draw.dtype(), of_weight = draw.coin() ? dtype : DType::kFloat32;
    const int64_t groups = draw.number(1, 3), channels = groups * draw.number(1, 24);
    Dims sizes{draw.number(2, 4), channels};
    for (int64_t d = draw.number(0, 3); d > 0; --d) sizes.push_back(draw.number(1, 9));
    const Tensor x = draw.tensor(sizes, dtype);
    const auto vector = [&](int64_t length) { return Value(draw.tensor({length}, dtype)); };
    const bool is_affine = draw.coin();
    std::vector<size_t> leaves{0};
    if (is_affine) leaves.insert(leaves.end(), {1, 2});
    const Value weight = is_affine ? vector(channels) : Value(), bias = is_affine ? vector(channels) : Value();
    if (draw.coin()) {
      const Tensor mean = draw.tensor({channels}, of_weight), variance = Tensor::empty(Dims{channels}, of_weight);
      variance.copy_from(Tensor::scalar(1.5));
      expect_as_on_host("aten::batch_norm", {x, weight, bias, mean, variance, draw.coin(), 0.1, 1e-3, true}, leaves,
                        dtype);
      continue;
    }
    std::vector<size_t> of_group{0};
    if (is_affine) of_group.insert(of_group.end(), {2, 3});
    expect_as_on_host("aten::group_norm", {x, groups, weight, bias, 1e-3}, of_group, dtype);
    const int64_t last = sizes.back();
    expect_as_on_host("aten::layer_norm",
                      {x, ints({last}), is_affine ? vector(last) : Value(), is_affine ? vector(last) : Value(), 1e-3},
                      of_group, dtype);
  }
}

TEST_F(CudaLayers, LossesOfLabels) {
  Draw draw(5);
  for (int run = 0; run < 80; ++run) {
    const DType dtype = draw.dtype();
    const int64_t classes = draw.number(1, 300), reduction = draw.number(0, 2), ignored = draw.coin() ? -100 : 0;
    Dims scores{draw.number(1, 5), classes}, labels{scores[0]};
    for (int64_t d = draw.number(0, 2); d > 0; --d)
      labels.push_back(draw.number(1, 4)), scores.push_back(labels.back());
    const Value weight = draw.coin() ? Value(draw.tensor({classes}, dtype)) : Value();
    const Tensor x = draw.tensor(scores, dtype), y = draw.labels(labels, classes, ignored);
    expect_as_on_host("aten::cross_entropy_loss", {x, y, weight, reduction, ignored, draw.coin() ? 0.0 : 0.25}, {0},
                      dtype);
    expect_as_on_host("aten::nll_loss_nd", {x, y, weight, reduction, ignored}, {0}, dtype);
  }
}

}  // namespace
}  // namespace tensord::cuda_layers_test
