// Fourier transforms on CUDA's devices: of any dimensions, in any layout, as on the host; and what the twin of cuFFT
// (tests/cuda/emulated) refuses. With TENSORD_CUDA naming the emulated devices' library.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/ops/run.h"
#include "core/tensor/complex.h"
#include "kernels/cuda/libraries/cufft_api.h"
#include "tests/device/cuda_library_fixture.h"

namespace tensord::cuda_transforms_test {
namespace {

using namespace cuda_tests;
using namespace cuda::cufft;
using ops::Value;
using CudaTransforms = CudaDevice;
using CudaFftTwin = CudaTwins;

Tensor drawn(const Dims& sizes, DType dtype, std::mt19937& random) {
  const Tensor pairs = Tensor::empty(sizes, DType::kComplex128), numbers = as_real_pairs(pairs);
  for (int64_t i = 0; i < numbers.numel(); ++i)
    numbers.data<double>()[i] = static_cast<double>(random() % 2001) / 1000 - 1;
  const Tensor dense = pairs.to(dtype);
  // The dimensions in another order in memory.
  Dims strides(sizes.size(), 0);
  int64_t stride = 1 + static_cast<int64_t>(random() % 2);
  const size_t first = random() % sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t d = (first + i) % sizes.size();
    strides[d] = stride;
    stride *= std::max<int64_t>(1, sizes[d]);
  }
  const Tensor out = Tensor::empty_strided(sizes, strides, dtype);
  out.copy_from(dense);
  return out;
}

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  const auto real = [](const Tensor& x) { return is_complex(x.dtype()) ? as_real_pairs(x.contiguous()) : x; };
  EXPECT_EQ(got.sizes(), expected.sizes()) << what;
  const double tolerance = real_dtype(expected.dtype()) == DType::kFloat64 ? 1e-11 : 3e-5;
  EXPECT_EQ(difference(real(got), real(expected), tolerance), "") << what;
}

TEST_F(CudaTransforms, OfAnyDimensionsAreTheHosts) {
  std::mt19937 random(3);
  const uint64_t before = library_calls();
  for (int run = 0; run < 150; ++run) {
    Dims sizes, dims;
    for (uint64_t d = 1 + random() % 5; d > 0; --d) sizes.push_back(1 + static_cast<int64_t>(random() % 7));
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      if (random() % 3 != 0) dims.push_back(d);
    }
    if (dims.empty()) dims.push_back(0);
    if (random() % 2 == 0) std::swap(dims[0], dims[dims.size() - 1]);
    const bool is_wide = random() % 2 == 0;
    const auto norm = static_cast<int64_t>(random() % 3);
    const Value by = ops::make_int_list(dims), is_set = random() % 2 == 0;
    const Tensor pairs = drawn(sizes, is_wide ? DType::kComplex128 : DType::kComplex64, random),
                 real = drawn(sizes, is_wide ? DType::kFloat64 : DType::kFloat32, random);
    const int64_t half = pairs.size(dims.back()), full = 2 * half - (half > 1 && random() % 2 == 0 ? 2 : 1);
    const std::vector<std::pair<const char*, std::vector<Value>>> calls{{"aten::_fft_c2c", {pairs, by, norm, is_set}},
                                                                        {"aten::_fft_r2c", {real, by, norm, is_set}},
                                                                        {"aten::_fft_c2r", {pairs, by, norm, full}}};
    for (const auto& [name, arguments] : calls) {
      const ops::Op& op = ops::get_op(name);
      const Tensor expected = called(op, arguments, {})[0].to_tensor(),
                   got = called(op, arguments, kGpu)[0].to_tensor();
      EXPECT_EQ(got.device(), kGpu);
      expect_close(got.to(Device{}), expected, concat(name, " of ", describe(arguments[0].to_tensor()), ", ", dims));
    }
  }
  EXPECT_EQ(library_calls() > before + 300, has_libraries() && counts_library_calls());
}

TEST_F(CudaTransforms, OfTensorsWithoutElementsAreEmpty) {
  const Tensor none = Tensor::empty(Dims{0, 4}, DType::kComplex64, kGpu);
  const Value dims = ops::make_int_list(Dims{1});
  EXPECT_EQ(ops::call_by_name("aten::_fft_c2c", none, dims, 0, true).sizes(), (Dims{0, 4}));
  EXPECT_EQ(ops::call_by_name("aten::_fft_c2r", none, dims, 0, 6).sizes(), (Dims{0, 6}));
}

struct Faults {
  long long size = 16;
  DataType in = kComplex64, out = kComplex64, compute = kComplex64;
  int32_t direction = kForward;
  size_t in_offset = 0, out_offset = 0;
  bool has_no_stream = false, has_no_workspace = false, is_destroyed = false, is_on_host = false, is_in_place = false;
};

// Two transforms by the twin's functions.
class Twin {
 public:
  Twin() {
#define F(RESULT, NAME, PARAMETERS) twin_function(#NAME, call_.NAME);
    TENSORD_CUFFT_FUNCTIONS(F)
#undef F
    cuda::check_cuda(cuda::api().allocate(0, kBytes, &memory_), "memory");
    cuda::check_cuda(cuda::api().make_stream(0, 0, &stream_), "stream");
  }
  ~Twin() {
    static_cast<void>(cuda::api().destroy_stream(stream_));
    static_cast<void>(cuda::api().free(0, memory_));
  }
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  // "" or what the twin says.
  std::string run(Faults faults) {
    const cuda::DeviceScope scope(0);
    size_t workspace_bytes = 0;
    Plan plan = 0;
    static char on_host[4096];
    void* const in = faults.is_on_host ? on_host : place(faults.in_offset);
    void* const out = faults.is_in_place ? in : place(4096 + faults.out_offset);
    const bool is_done = is_fine(call_.cufftCreate(&plan)) && is_fine(call_.cufftSetAutoAllocation(plan, 0)) &&
                         is_fine(call_.cufftXtMakePlanMany(plan, 1, &faults.size, nullptr, 1, 0, faults.in, nullptr, 1,
                                                           0, faults.out, 2, &workspace_bytes, faults.compute)) &&
                         (faults.has_no_stream || is_fine(call_.cufftSetStream(plan, stream_))) &&
                         (faults.has_no_workspace || is_fine(call_.cufftSetWorkArea(plan, place(8192)))) &&
                         (!faults.is_destroyed || is_fine(call_.cufftDestroy(plan))) &&
                         is_fine(call_.cufftXtExec(plan, in, out, faults.direction));
    return is_done ? "" : refusal();
  }

 private:
  static constexpr size_t kBytes = 12288;
  static bool is_fine(Status status) { return status == kSuccess; }
  void* place(size_t offset) const { return static_cast<char*>(memory_) + offset; }

  Functions call_;
  void* memory_ = nullptr;
  cuda::StreamHandle stream_ = nullptr;
};

TEST_F(CudaFftTwin, RefusesWhatCufftForbids) {
  Twin twin;
  EXPECT_EQ(twin.run({}), "");
  EXPECT_EQ(twin.run({.in = kFloat32}), "");
  EXPECT_EQ(twin.run({.out = kFloat32, .direction = kInverse}), "");
  EXPECT_EQ(twin.run({.size = 0}), "a size that is not positive");
  EXPECT_EQ(twin.run({.in = kComplex128}), "types that do not fit");
  EXPECT_EQ(twin.run({.in = kFloat32, .out = kFloat32}), "real numbers on both sides");
  EXPECT_EQ(twin.run({.in = kFloat32, .direction = kInverse}), "real numbers are transformed forward");
  EXPECT_EQ(twin.run({.out = kFloat32}), "half a spectrum is transformed back");
  EXPECT_EQ(twin.run({.in = kFloat32, .in_offset = 4}), "the input is not aligned to complex numbers");
  EXPECT_EQ(twin.run({.out_offset = 8192 - 128}), "the output ends beyond what was allocated");
  EXPECT_EQ(twin.run({.is_on_host = true}), "the input is not memory of the device");
  EXPECT_EQ(twin.run({.has_no_stream = true}), "no stream, or a stream of another device");
  EXPECT_EQ(twin.run({.has_no_workspace = true}), "no workspace");
  EXPECT_EQ(twin.run({.is_destroyed = true}), "the plan was not made, or is destroyed");
  EXPECT_EQ(twin.run({.in = kFloat32, .is_in_place = true}), "a transform in place whose sides differ");
}

}  // namespace
}  // namespace tensord::cuda_transforms_test
