// Attention on CUDA's devices: shapes, strides, masks and dtypes that are drawn give what they give on the host. With
// TENSORD_CUDA naming the emulated devices' library.
#include <optional>
#include <random>

#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_attention_test {
namespace {

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

}  // namespace
}  // namespace tensord::cuda_attention_test
