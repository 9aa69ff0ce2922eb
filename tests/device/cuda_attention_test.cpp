// Attention on CUDA's devices: shapes, strides, masks and dtypes that are drawn give what they give on the host. With
// TENSORD_CUDA naming the emulated devices' library.
#include <optional>
#include <random>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/generator.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_attention_test {
namespace {

using cuda_tests::difference;
using cuda_tests::expect_as_on_host;
using cuda_tests::kGpu;
using cuda_tests::queued_work;
using ops::call_by_name;
using ops::Value;

using CudaAttention = cuda_tests::CudaDevice;

class DrawnCall {
 public:
  explicit DrawnCall(unsigned seed) : random_(seed) {
    const size_t batch = number(0, 3);
    Dims sizes(batch, 0);
    for (size_t d = 0; d < batch; ++d) sizes[d] = number(1, 3);
    const int64_t queries = one_of(1, 5, 33), keys = one_of(1, 7, 70), depth = one_of(3, 32, 41),
                  value_depth = one_of(2, 32, 67);
    const DType dtype = number(0, 1) == 0 ? DType::kFloat32 : number(0, 1) == 0 ? DType::kFloat64 : half();
    const int64_t kind = number(0, 3);  // of the mask
    Value mask, fill;
    if (kind == 1) mask = tensor(some(sizes, queries, keys), dtype);
    if (kind >= 2) {
      mask = call_by_name("aten::gt.Scalar", tensor(some(sizes, queries, keys), DType::kFloat32), 0.5);
      fill = number(0, 1) == 0 ? -INFINITY : -3.0;
    }
    arguments = {tensor(with(sizes, queries, depth), dtype),
                 tensor(with(broadcast(sizes), keys, depth), dtype),
                 tensor(with(broadcast(sizes), keys, value_depth), dtype),
                 mask,
                 0.37,
                 fill,
                 number(0, 1) == 0,
                 number(0, 1) == 0,
                 batch > 0 && number(0, 2) == 0,
                 number(0, 1) == 0};
    tolerance = dtype == DType::kFloat64 ? 1e-12 : dtype == DType::kFloat32 ? 1e-5 : 2e-2;
  }
  std::vector<Value> arguments;
  double tolerance = 0;

 private:
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  int64_t one_of(int64_t a, int64_t b, int64_t most) {
    const int64_t which = number(0, 2);
    return which == 0 ? a : which == 1 ? b : number(1, most);
  }
  DType half() { return number(0, 1) == 0 ? DType::kFloat16 : DType::kBFloat16; }
  static Dims with(Dims sizes, int64_t a, int64_t b) {
    sizes.push_back(a);
    sizes.push_back(b);
    return sizes;
  }
  // Heads that several queries share have the size 1.
  Dims broadcast(Dims sizes) {
    for (int64_t& size : sizes) size = number(0, 2) == 0 ? 1 : size;
    return sizes;
  }
  Dims some(const Dims& sizes, int64_t queries, int64_t keys) {
    if (number(0, 3) == 0) return Dims{keys};
    const Dims batch = number(0, 1) == 0 ? Dims() : broadcast(sizes);
    return with(batch, number(0, 3) == 0 ? 1 : queries, keys);
  }
  // Dense, with a transposed end, or a part of a larger tensor.
  Tensor tensor(const Dims& sizes, DType dtype) {
    Dims strides = contiguous_strides(sizes);
    const int64_t order = number(0, 2);
    if (order == 1 && sizes.size() >= 2) {
      const size_t n = sizes.size();
      strides[n - 2] = 1, strides[n - 1] = sizes[n - 2];
    }
    if (order == 2) {
      for (int64_t& stride : strides) stride *= 3;
    }
    const Tensor wide = Tensor::empty(sizes, DType::kFloat64), out = Tensor::empty_strided(sizes, strides, dtype);
    for (int64_t i = 0; i < wide.numel(); ++i) wide.data<double>()[i] = static_cast<double>(number(-64, 64)) / 32;
    out.copy_from(wide);
    return out;
  }
  std::mt19937 random_;
};

TEST_F(CudaAttention, AsOnTheHost) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const DrawnCall call(seed);
    SCOPED_TRACE(concat("call ", seed));
    expect_as_on_host("tensord::attention", call.arguments, call.tolerance);
    if (HasFailure()) return;
  }
}

// One launch, whatever the heads and masks are.
TEST_F(CudaAttention, IsOneKernel) {
  const Tensor x = Tensor::empty(Dims{2, 4, 9, 16}, DType::kFloat32, kGpu);
  call_by_name("aten::zero_", x);
  const std::optional<uint64_t> before = queued_work();
  if (!before) GTEST_SKIP() << "these are not the emulated devices";
  const Tensor out = call_by_name("aten::scaled_dot_product_attention", x, x, x, Value(), 0.0, true, Value(), false);
  EXPECT_EQ(queued_work(), *before + 1);
}

Tensor numbers_of(std::initializer_list<double> values, const Dims& sizes) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  std::copy(values.begin(), values.end(), out.data<double>());
  return out.to(DType::kFloat32);
}

// Rows without a key, rows with NaNs and infinities, and operands without elements.
TEST_F(CudaAttention, EdgesAsOnTheHost) {
  const double inf = INFINITY;
  const Tensor query = numbers_of({1, 2, 3, 4, NAN, 1, inf, 1}, {4, 2}), key = numbers_of({1, 0, 0, 1, 1, 1}, {3, 2}),
               value = numbers_of({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor hidden = numbers_of({0, 0, 0, -inf, -inf, -inf, 0, 0, 0, 0, -inf, 0}, {4, 3});
  for (const bool is_safe : {false, true}) {
    for (const Value& mask : {Value(), Value(hidden)})
      expect_as_on_host("tensord::attention", {query, key, value, mask, 1.0, Value(), true, false, false, is_safe},
                        1e-6);
  }
  const auto empty = [](const Dims& sizes) { return Tensor::empty(sizes, DType::kFloat32); };
  for (const auto& [q, k, v] :
       {std::array{Dims{4, 2}, Dims{0, 2}, Dims{0, 3}}, std::array{Dims{0, 2}, Dims{3, 2}, Dims{3, 2}},
        std::array{Dims{4, 0}, Dims{3, 0}, Dims{3, 2}}}) {
    const Tensor values = call_by_name("aten::ones_like", empty(v));
    expect_as_on_host("tensord::attention",
                      {empty(q), empty(k), values, Value(), 1.0, Value(), true, false, false, false}, 1e-6);
  }
}

// --- gradients

Tensor drawn(const Dims& sizes, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] = static_cast<double>(random() % 129) / 64 - 1;
  return out.to(dtype);
}
Tensor moved(const Tensor& x, Device device) {
  const Tensor out = Tensor::empty_strided(x.sizes(), x.strides(), x.dtype(), device);
  out.copy_from(x);
  return out;
}

struct Gradients {
  std::vector<Tensor> first, second;  // of query, key and value, on the host
};
// The second ones are of the sum of the first ones' squares.
Gradients gradients_of(const std::string& name, std::vector<Value> arguments, Device device, bool has_second = false) {
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_tensor()) continue;
    const Tensor copy = moved(arguments[i].to_tensor(), device);
    arguments[i] = copy;
    if (i < 3) autograd::set_requires_grad(copy), leaves.push_back(copy);
  }
  const ops::Op& op = ops::get_op(name);
  const Tensor roots[] = {ops::run(op, ops::bind(op, arguments)).front().to_tensor()};
  const Tensor given[] = {moved(drawn(roots[0].sizes(), roots[0].dtype(), 9), device)};
  Gradients out;
  const std::vector<Tensor> first = autograd::grad(roots, leaves, given, {.create_graph = has_second});
  for (const Tensor& gradient : first) out.first.push_back(autograd::detach(gradient).to(Device{}));
  if (!has_second) return out;
  Tensor sum;
  for (const Tensor& gradient : first) {
    const Tensor square = call_by_name("aten::sum", call_by_name("aten::mul.Tensor", gradient, gradient));
    sum = sum ? call_by_name("aten::add.Tensor", sum, square) : square;
  }
  const Tensor sums[] = {sum};
  for (const Tensor& gradient : autograd::grad(sums, leaves)) out.second.push_back(gradient.to(Device{}));
  return out;
}
void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  constexpr const char* kNames[] = {"query", "key", "value"};
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(difference(got[i], expected[i], tolerance), "") << kNames[i];
}

// By kernels on the device, of plain operators on the host.
TEST_F(CudaAttention, GradientsAsOnTheHost) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const DrawnCall call(seed);
    SCOPED_TRACE(concat("call ", seed));
    const auto of = [&](Device device) { return gradients_of("tensord::attention", call.arguments, device).first; };
    expect_same(of(kGpu), of({}), 10 * call.tolerance);
    if (HasFailure()) return;
  }
}

// Queries that several heads of keys share, and keys and values that are shared along other dimensions.
TEST_F(CudaAttention, GradientsOfSharedHeadsAreSums) {
  const auto of = [](Device device) {
    return gradients_of("tensord::attention",
                        {drawn({3, 1, 2, 34, 5}, DType::kFloat64, 1), drawn({1, 4, 2, 40, 5}, DType::kFloat64, 2),
                         drawn({3, 1, 1, 40, 70}, DType::kFloat64, 3), Value(), 0.4},
                        device)
        .first;
  };
  expect_same(of(kGpu), of({}), 1e-11);
}

TEST_F(CudaAttention, SecondGradientsAsOnTheHost) {
  for (const std::string name : {"aten::scaled_dot_product_attention", "tensord::attention"}) {
    const Value more = name == "tensord::attention" ? Value(0.4) : Value(0.0);
    const auto of = [&](Device device) {
      return gradients_of(name,
                          {drawn({2, 5, 4}, DType::kFloat64, 1), drawn({2, 6, 4}, DType::kFloat64, 2),
                           drawn({2, 6, 3}, DType::kFloat64, 3), Value(), more},
                          device, true);
    };
    const Gradients got = of(kGpu), expected = of({});
    expect_same(got.first, expected.first, 1e-11);
    expect_same(got.second, expected.second, 1e-11);
  }
}

// With what the forward pass kept: sums of rows, then one kernel for each operand. No scores are in memory.
TEST_F(CudaAttention, GradientsOfGroupedQueries) {
  const std::vector<Value> arguments{drawn({2, 6, 35, 8}, DType::kFloat32, 1),
                                     drawn({2, 2, 35, 8}, DType::kFloat32, 2),
                                     drawn({2, 2, 35, 8}, DType::kFloat32, 3),
                                     Value(),
                                     0.0,
                                     true,
                                     Value(),
                                     true};
  const auto of = [&](Device device) {
    return gradients_of("aten::scaled_dot_product_attention", arguments, device).first;
  };
  expect_same(of(kGpu), of({}), 1e-4);

  const Tensor x = moved(drawn({2, 6, 35, 8}, DType::kFloat32, 1), kGpu);
  autograd::set_requires_grad(x);
  for (const bool keeps_statistics : {true, false}) {
    const Tensor roots[] = {keeps_statistics ? call_by_name("aten::scaled_dot_product_attention", x, x, x)
                                             : call_by_name("tensord::attention", x, x, x, Value(), 0.3)};
    const Tensor leaves[] = {x}, given[] = {moved(drawn(roots[0].sizes(), DType::kFloat32, 2), kGpu)};
    const std::optional<uint64_t> before = queued_work();
    if (!before) GTEST_SKIP() << "these are not the emulated devices";
    autograd::grad(roots, leaves, given);
    // And two additions of the three gradients. Without the statistics, the forward pass runs again.
    EXPECT_EQ(queued_work(), *before + (keeps_statistics ? 6 : 7));
  }
}

// The mask is drawn again in the backward pass: gradients are those of a product with the weights that were kept.
TEST_F(CudaAttention, DropoutAndItsGradients) {
  constexpr double kDropout = 0.3;
  const ops::Op& op = ops::get_op("tensord::attention_training");
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    const std::vector<Tensor> given{drawn({2, 3, 37, 6}, dtype, 1), drawn({2, 3, 75, 6}, dtype, 2),
                                    drawn({2, 3, 75, 5}, dtype, 3)};
    std::vector<Tensor> leaves, host;
    for (const Tensor& x : given) {
      autograd::set_requires_grad(leaves.emplace_back(moved(x, kGpu)));
      autograd::set_requires_grad(host.emplace_back(x.clone()));
    }
    const std::vector<Value> arguments{leaves[0], leaves[1], leaves[2], Value(), 0.4,
                                       Value(),   true,      false,     true,    kDropout};
    const auto run = [&] { return ops::run(op, ops::bind(op, arguments)); };
    const std::vector<Value> results = run();
    const Tensor kept = call_by_name("tensord::attention_kept", results[1], results[2], int64_t{75}, kDropout);
    int64_t zeros = 0;
    const Tensor numbers = kept.to(Device{}).to(DType::kFloat64);
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const double x = numbers.data<double>()[i];
      ASSERT_TRUE(x == 0 || std::abs(x - 1 / (1 - kDropout)) < 1e-6) << x;
      zeros += x == 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(numbers.numel()), kDropout, 0.015);
    const Tensor scores = call_by_name("aten::matmul", call_by_name("aten::mul.Scalar", host[0], 0.4),
                                       call_by_name("aten::transpose.int", host[1], -2, -1));
    const Tensor weights = call_by_name("aten::softmax.int", scores, -1, Value());
    const Tensor roots[] = {
        call_by_name("aten::matmul", call_by_name("aten::mul.Tensor", weights, kept.to(Device{}).to(dtype)), host[2])};
    const double tolerance = dtype == DType::kFloat64 ? 1e-11 : 1e-4;
    const Tensor own_roots[] = {results[0].to_tensor()};
    EXPECT_EQ(difference(own_roots[0].to(Device{}), roots[0], tolerance), "");
    const Tensor grads[] = {drawn(roots[0].sizes(), dtype, 7)}, own_grads[] = {moved(grads[0], kGpu)};
    std::vector<Tensor> got;
    for (const Tensor& x : autograd::grad(own_roots, leaves, own_grads)) got.push_back(x.to(Device{}));
    expect_same(got, autograd::grad(roots, host, grads), tolerance);
    // Another call draws other numbers.
    EXPECT_NE(difference(run()[0].to_tensor().to(Device{}), own_roots[0].to(Device{})), "");
  }
}

// What is composed for second derivatives draws the same mask.
TEST_F(CudaAttention, DropoutOfSecondGradients) {
  const std::vector<Value> arguments{drawn({2, 9, 6}, DType::kFloat64, 1), drawn({2, 9, 6}, DType::kFloat64, 2),
                                     drawn({2, 9, 6}, DType::kFloat64, 3), Value(), 0.5};
  ops::Generator generator(5);
  const auto of = [&](bool has_second) {
    const ops::GeneratorGuard guard(generator);
    generator.set_seed(5);
    return gradients_of("aten::scaled_dot_product_attention", arguments, kGpu, has_second).first;
  };
  const std::vector<Tensor> by_kernels = of(false);
  expect_same(of(true), by_kernels, 1e-12);
}

// Additions are in a fixed order, whatever the order of the threads.
TEST_F(CudaAttention, GradientsAreTheSameBitsAgain) {
  const auto of = [] {
    return gradients_of("aten::scaled_dot_product_attention",
                        {drawn({2, 4, 70, 8}, DType::kFloat32, 1), drawn({2, 1, 70, 8}, DType::kFloat32, 2),
                         drawn({2, 1, 70, 8}, DType::kFloat32, 3)},
                        kGpu)
        .first;
  };
  expect_same(of(), of(), 0);
}

}  // namespace
}  // namespace tensord::cuda_attention_test
