// Factorizations on CUDA's devices: what the factors multiply to, codes of errors, and what the twins of cuSOLVER and
// cuBLAS (tests/cuda/emulated) refuse. With TENSORD_CUDA naming the emulated devices' library.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"
#include "kernels/cuda/libraries/cusolver_api.h"
#include "ops/complex.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"
#include "tests/device/cuda_library_fixture.h"

namespace tensord::cuda_factors_test {
namespace {

using namespace cuda_tests;
using namespace cuda::cusolver;
using ops::Value;
using CudaFactors = CudaDevice;
using CudaSolverTwin = CudaTwins;

constexpr DType kAllDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128};

// Row by row or, for even seeds, column by column.
Tensor matrices(const Dims& sizes, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  const bool is_turned = seed % 2 == 0;
  Dims drawn = sizes;
  if (is_turned) std::swap(drawn[drawn.size() - 1], drawn[drawn.size() - 2]);
  const Tensor pairs = Tensor::empty(drawn, DType::kComplex128), numbers = as_real_pairs(pairs);
  for (int64_t i = 0; i < numbers.numel(); ++i)
    numbers.data<double>()[i] = static_cast<double>(random() % 2001) / 1000 - 1;
  const Tensor out = pairs.to(dtype);
  return is_turned ? ops::transpose(out, -1, -2) : out;
}
Tensor there(const Tensor& x) {
  const Tensor out = Tensor::empty_strided(x.sizes(), x.strides(), x.dtype(), kGpu);
  out.copy_from(x);
  return out;
}
void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  const auto real = [](const Tensor& x) {
    const Tensor here = x.to(Device{}).contiguous();
    return is_complex(here.dtype()) ? as_real_pairs(here) : here;
  };
  const double tolerance = real_dtype(expected.dtype()) == DType::kFloat64 ? 1e-10 : 1e-4;
  EXPECT_EQ(difference(real(got), real(expected), tolerance), "") << what << " of " << describe(expected);
}
template <class... A>
std::vector<Tensor> parts_of(const char* name, const A&... arguments) {
  const ops::Op& op = ops::get_op(name);
  std::vector<Tensor> out;
  for (const Value& result : ops::run(op, ops::bind(op, {Value(arguments)...}))) out.push_back(result.to_tensor());
  return out;
}

TEST_F(CudaFactors, MultiplyToTheMatrix) {
  const uint64_t before = library_calls();
  unsigned seed = 1;
  for (const DType dtype : kAllDTypes) {
    for (const Dims& sizes : {Dims{5, 5}, Dims{2, 3, 6, 4}, Dims{3, 4, 7}, Dims{1, 1}, Dims{40, 33}}) {
      const Tensor a = matrices(sizes, dtype, ++seed), on_gpu = there(a);
      const auto lu = parts_of("aten::linalg_lu", on_gpu, true);
      expect_close(ops::matmul(lu[0], ops::matmul(lu[1], lu[2])), a, "P L U");
      for (const char* mode : {"reduced", "complete"}) {
        const auto qr = parts_of("aten::linalg_qr", on_gpu, std::string(mode));
        expect_close(ops::matmul(qr[0], qr[1]), a, "Q R");
        const auto host = parts_of("aten::linalg_qr", a, std::string(mode));
        EXPECT_EQ(qr[0].sizes(), host[0].sizes());
      }
      for (const bool is_full : {false, true}) {
        const auto svd = parts_of("aten::_linalg_svd", on_gpu, is_full, true);
        const int64_t steps = svd[1].size(-1);
        const Tensor u = ops::narrow(svd[0], -1, 0, steps), vh = ops::narrow(svd[2], -2, 0, steps);
        expect_close(ops::matmul(ops::mul(u, ops::unsqueeze(svd[1], -2)), vh), a, "U S Vᴴ");
        const auto host = parts_of("aten::_linalg_svd", a, is_full, true);
        expect_close(svd[1], host[1], "S");
        for (const size_t side : {0, 2}) {
          EXPECT_EQ(svd[side].sizes(), host[side].sizes());
          EXPECT_EQ(svd[side].strides(), host[side].strides());
        }
        expect_close(parts_of("aten::_linalg_svd", on_gpu, is_full, false)[1], host[1], "S alone");
      }
    }
  }
  EXPECT_EQ(library_calls() > before + 200, has_libraries() && counts_library_calls());
}

TEST_F(CudaFactors, OfSymmetricMatricesMultiplyToThem) {
  unsigned seed = 100;
  for (const DType dtype : kAllDTypes) {
    for (const Dims& sizes : {Dims{6, 6}, Dims{2, 2, 3, 3}, Dims{30, 30}}) {
      const Tensor root = matrices(sizes, dtype, ++seed);
      const Tensor a = ops::add(ops::matmul(root, ops::mH(root)), ops::eye(sizes.back(), {.dtype = dtype}));
      for (const bool is_upper : {false, true}) {
        const Tensor l = parts_of("aten::linalg_cholesky_ex", there(a), is_upper, true)[0];
        expect_close(is_upper ? ops::matmul(ops::mH(l), l) : ops::matmul(l, ops::mH(l)), a, "L Lᴴ");
        const auto eigh = parts_of("aten::_linalg_eigh", there(a), std::string(is_upper ? "U" : "L"), true);
        expect_close(ops::matmul(ops::mul(eigh[1], ops::unsqueeze(eigh[0], -2)), ops::mH(eigh[1])), a, "V L Vᴴ");
        expect_close(parts_of("aten::_linalg_eigh", there(a), std::string("L"), false)[0], eigh[0].to(Device{}), "L");
      }
      const Tensor b = matrices(sizes, dtype, ++seed);
      expect_close(ops::linalg_solve(there(a), there(b)), ops::linalg_solve(a, b), "A⁻¹ B");
      expect_close(ops::linalg_inv(there(a)), ops::linalg_inv(a), "A⁻¹");
      expect_close(ops::linalg_det(there(root)), ops::linalg_det(root), "det");
    }
  }
}

// Small matrices of a batch go to one call of the library, large ones and those that are not square one by one.
TEST_F(CudaFactors, OfABatchAreOneCall) {
  if (!has_libraries() || !counts_library_calls()) GTEST_SKIP() << "calls are not counted";
  const auto calls = [](const std::function<void()>& fn) {
    const uint64_t before = library_calls();
    fn();
    synchronize(kGpu);
    return library_calls() - before;
  };
  const Tensor a = matrices({50, 4, 4}, DType::kFloat64, 3), wide = matrices({5, 4, 6}, DType::kFloat64, 3),
               large = matrices({2, 300, 300}, DType::kFloat32, 3), b = matrices({50, 4, 2}, DType::kFloat64, 5);
  const Tensor squares = there(ops::add(ops::matmul(a, ops::mH(a)), ops::eye(4, {.dtype = DType::kFloat64})));
  EXPECT_EQ(calls([&] { parts_of("aten::linalg_cholesky_ex", squares, false, false); }), 1u);
  EXPECT_EQ(calls([&] { parts_of("aten::linalg_lu_factor_ex", there(a), true, false); }), 1u);
  EXPECT_EQ(calls([&] { parts_of("aten::linalg_lu_factor_ex", there(wide), true, false); }), 5u);
  EXPECT_EQ(calls([&] { parts_of("aten::linalg_lu_factor_ex", there(large), true, false); }), 2u);
  const Tensor triangle = ops::tril(squares);
  EXPECT_EQ(calls([&] { ops::linalg_solve_triangular(triangle, there(b), {.upper = false}); }), 1u);
  // Some of them cannot be factored.
  Tensor some = squares.to(Device{});
  for (const int64_t i : {3, 49}) ops::zero_(ops::select(some, 0, i));
  for (const char* name : {"aten::linalg_cholesky_ex", "aten::linalg_lu_factor_ex"}) {
    const auto got = parts_of(name, there(some), std::strstr(name, "lu") != nullptr, false);
    const auto expected = parts_of(name, some, std::strstr(name, "lu") != nullptr, false);
    EXPECT_EQ(difference(got.back().to(Device{}), expected.back()), "") << name;
    if (got.size() < 3) continue;
    EXPECT_EQ(difference(got[1].to(Device{}), expected[1]), "") << name;
  }
}

// The gradient of a sum in which each vector meets its partner, so that their signs do not matter.
Tensor gradient_of(const Tensor& a, const std::function<Tensor(const Tensor&)>& function) {
  const Tensor leaf = a.clone();
  autograd::set_requires_grad(leaf);
  const Tensor result = function(leaf);
  const Tensor weights = Tensor::empty(result.sizes(), DType::kFloat64);
  for (int64_t i = 0; i < weights.numel(); ++i) weights.data<double>()[i] = static_cast<double>(i % 5) - 1.5;
  const std::vector<Tensor> roots{result}, leaves{leaf}, grads{weights.to(result.dtype()).to(result.device())};
  return autograd::grad(roots, leaves, grads)[0];
}

TEST_F(CudaFactors, GradientsAreTheHosts) {
  const auto singular = [](const Tensor& x) {
    const auto svd = parts_of("aten::_linalg_svd", x, false, true);
    return ops::matmul(ops::mul(svd[0], ops::unsqueeze(ops::exp(svd[1]), -2)), svd[2]);
  };
  const auto symmetric = [](const Tensor& x) {
    const auto eigh = parts_of("aten::_linalg_eigh", x, std::string("L"), true);
    return ops::matmul(ops::mul(eigh[1], ops::unsqueeze(ops::exp(eigh[0]), -2)), ops::mH(eigh[1]));
  };
  for (const DType dtype : {DType::kFloat64, DType::kComplex128}) {
    for (const Dims& sizes : {Dims{4, 4}, Dims{2, 5, 3}, Dims{3, 5}}) {
      const Tensor a = matrices(sizes, dtype, 40);
      expect_close(gradient_of(there(a), singular), gradient_of(a, singular), "gradient of svd");
    }
    const Tensor root = matrices(Dims{2, 4, 4}, dtype, 41), a = ops::add(root, ops::mH(root));
    expect_close(gradient_of(there(a), symmetric), gradient_of(a, symmetric), "gradient of eigh");
  }
}

TEST_F(CudaFactors, ErrorsAreTheHosts) {
  const Tensor zero = ops::zeros(Dims{3, 3}),
               pivots = ops::full(Dims{3}, ops::Scalar(int64_t{9}), {.dtype = DType::kInt32});
  const auto message_on = [&](Device device, const char* name, const std::vector<Value>& arguments) {
    return message_of([&] { called(ops::get_op(name), arguments, device); });
  };
  Tensor nan = Tensor::empty(Dims{3, 3}, DType::kFloat32);
  nan.copy_from(zero);
  nan.data<float>()[4] = NAN;
  const std::vector<std::pair<const char*, std::vector<Value>>> calls{
      {"aten::linalg_inv", {zero}},
      {"aten::linalg_cholesky", {zero}},
      {"aten::linalg_solve", {zero, zero}},
      {"aten::_linalg_svd", {nan, false, true, Value()}},
      {"aten::_linalg_eigh", {nan, std::string("L"), true}},
      {"tensord::exchange_rows", {zero, pivots, false}}};
  for (const auto& [name, arguments] : calls) {
    const std::string expected = message_on({}, name, arguments);
    EXPECT_NE(expected, "") << name;
    EXPECT_EQ(message_on(kGpu, name, arguments), expected);
  }
}

struct Faults {
  int64_t m = 8, n = 4, ld = 8;
  DataType compute = kFloat32;
  size_t offset = 0, missing = 0, missing_on_host = 0;
  bool has_no_stream = false, has_no_params = false, is_on_host = false;
};

// The factors of a matrix by the twin's functions: "" or what it says.
std::string lu_by_twin(const Faults& faults) {
  Functions call;
#define F(RESULT, NAME, PARAMETERS) twin_function(#NAME, call.NAME);
  TENSORD_CUSOLVER_FUNCTIONS(F)
#undef F
  const cuda::DeviceScope scope(0);
  void* memory = nullptr;
  cuda::StreamHandle stream = nullptr;
  cuda::check_cuda(cuda::api().allocate(0, 16384, &memory), "memory");
  cuda::check_cuda(cuda::api().make_stream(0, 0, &stream), "stream");
  const auto place = [&](size_t offset) { return static_cast<char*>(memory) + offset; };
  Handle handle = nullptr;
  Params params = nullptr;
  size_t device_bytes = 0, host_bytes = 0;
  static float on_host[64];
  void* const a = faults.is_on_host ? on_host : static_cast<void*>(place(faults.offset));
  const auto is_fine = [](Status status) { return status == kSuccess; };
  const bool is_done =
      is_fine(call.cusolverDnCreate(&handle)) &&
      (faults.has_no_params || is_fine(call.cusolverDnCreateParams(&params))) &&
      (faults.has_no_stream || is_fine(call.cusolverDnSetStream(handle, stream))) &&
      is_fine(call.cusolverDnXgetrf_bufferSize(handle, params, faults.m, faults.n, kFloat32, a, faults.ld, kFloat32,
                                               &device_bytes, &host_bytes)) &&
      is_fine(call.cusolverDnXgetrf(handle, params, faults.m, faults.n, kFloat32, a, faults.ld,
                                    reinterpret_cast<int64_t*>(place(4096)), faults.compute, place(8192),
                                    device_bytes - faults.missing, std::vector<char>(host_bytes).data(),
                                    host_bytes - faults.missing_on_host, reinterpret_cast<int32_t*>(place(12288))));
  cuda::check_cuda(cuda::api().destroy_stream(stream), "stream");
  cuda::check_cuda(cuda::api().free(0, memory), "memory");
  return is_done ? "" : refusal();
}

TEST_F(CudaSolverTwin, RefusesWhatCusolverForbids) {
  EXPECT_EQ(lu_by_twin({}), "");
  EXPECT_EQ(lu_by_twin({.ld = 7}), "A's leading dimension is less than its rows");
  EXPECT_EQ(lu_by_twin({.compute = kFloat64}), "types that do not fit");
  EXPECT_EQ(lu_by_twin({.offset = 2}), "A is not aligned to its elements");
  EXPECT_EQ(lu_by_twin({.offset = 16384 - 64}), "A ends beyond what was allocated");
  EXPECT_EQ(lu_by_twin({.missing = 1}), "the workspace is smaller than the bytes that were asked for");
  EXPECT_EQ(lu_by_twin({.missing_on_host = 1}), "the host's workspace is smaller than the bytes that were asked for");
  EXPECT_EQ(lu_by_twin({.has_no_stream = true}), "no stream, or a stream of another device");
  EXPECT_EQ(lu_by_twin({.has_no_params = true}), "params was not made, or is destroyed");
  EXPECT_EQ(lu_by_twin({.is_on_host = true}), "A is not memory of the device");
}

}  // namespace
}  // namespace tensord::cuda_factors_test
