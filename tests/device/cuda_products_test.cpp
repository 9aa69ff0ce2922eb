// Products on CUDA's devices: matrices in any layout give what they give on the host, and the twin of cuBLASLt
// (tests/cuda/emulated) refuses wrong descriptors. With TENSORD_CUDA naming the emulated devices' library.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/ops/run.h"
#include "kernels/cuda/libraries/cublaslt_api.h"
#include "tests/device/cuda_library_fixture.h"

namespace tensord::cuda_products_test {
namespace {

using namespace cuda_tests;
using namespace cuda::cublaslt;
using ops::Value;
using CudaProducts = CudaDevice;

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  // Quarters, so that sums are exact.
  void fill(const Tensor& out) {
    const Tensor wide = Tensor::empty(out.sizes(), DType::kFloat64);
    for (int64_t i = 0; i < wide.numel(); ++i) wide.data<double>()[i] = static_cast<double>(number(-8, 8)) / 4;
    out.copy_from(wide);
  }
  // Batches of matrices: row by row or column by column, a part of larger ones, or with gaps between elements.
  Tensor matrices(const Dims& batch, int64_t rows, int64_t columns, DType dtype) {
    Dims sizes = batch;
    sizes.push_back(rows), sizes.push_back(columns);
    Dims strides(sizes.size(), 0);
    const int64_t gap = number(0, 5) == 0 ? 2 : 1, pad = number(0, 1) * number(0, 9);
    const bool is_turned = number(0, 1) == 1, is_inside_out = number(0, 3) == 0 && !batch.empty();
    size_t order[2] = {sizes.size() - 1, sizes.size() - 2};
    if (is_turned) std::swap(order[0], order[1]);
    int64_t stride = gap;
    strides[order[0]] = stride;
    stride = stride * sizes[order[0]] + pad;
    if (is_inside_out) {  // as heads beside each other
      strides[batch.size() - 1] = stride;
      stride *= batch.back();
    }
    strides[order[1]] = stride;
    stride *= sizes[order[1]];
    for (size_t d = batch.size() - (is_inside_out ? 1 : 0); d-- > 0; stride *= sizes[d]) strides[d] = stride;
    const Tensor out = Tensor::empty_strided(sizes, strides, dtype);
    fill(out);
    return out;
  }
  DType dtype() {
    constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kInt64};
    return kAll[number(0, 4)];
  }

 private:
  std::mt19937 random_;
};

double tolerance_of(DType dtype) { return dtype == DType::kBFloat16 ? 1e-2 : dtype == DType::kFloat16 ? 2e-3 : 1e-6; }

TEST_F(CudaProducts, OfAnyLayoutAreTheHosts) {
  Draw draw(1);
  const uint64_t before = library_calls();
  for (int run = 0; run < 200; ++run) {
    const DType dtype = draw.dtype();
    const int64_t m = draw.number(1, 20), n = draw.number(1, 20), k = draw.number(1, 40);
    Dims batch;
    for (int64_t d = draw.number(0, 3); d > 0; --d) batch.push_back(draw.number(1, 3));
    const Tensor a = draw.matrices(batch, m, k, dtype),
                 b = draw.matrices(draw.number(0, 1) ? batch : Dims{}, k, n, dtype);
    expect_as_on_host("aten::matmul", {a, b}, tolerance_of(dtype));
    const Tensor weight = draw.matrices({}, n, k, dtype), bias = Tensor::empty(Dims{n}, dtype);
    draw.fill(bias);
    if (dtype != DType::kInt64) expect_as_on_host("aten::linear", {a, weight, bias}, tolerance_of(dtype));
    const Tensor left = draw.matrices({}, m, k, dtype), right = draw.matrices({}, k, n, dtype),
                 given = draw.number(0, 1) ? bias : draw.matrices({}, m, n, dtype);
    const int64_t beta = draw.number(0, 2);
    expect_as_on_host("aten::addmm", {given, left, right, beta, 2}, tolerance_of(dtype));
    const Dims three{draw.number(1, 4)};
    expect_as_on_host("aten::baddbmm",
                      {draw.matrices(three, m, n, dtype), draw.matrices(three, m, k, dtype),
                       draw.matrices(three, k, n, dtype), beta, 1},
                      tolerance_of(dtype));
  }
  EXPECT_EQ(library_calls() > before + 500, has_libraries() && counts_library_calls());
}

TEST_F(CudaProducts, OutIsFilledInItsOwnLayout) {
  Draw draw(2);
  for (int run = 0; run < 60; ++run) {
    const DType dtype = draw.dtype();
    const Dims batch = draw.number(0, 1) ? Dims{draw.number(1, 3)} : Dims{};
    const Tensor a = draw.matrices(batch, 5, 9, dtype), b = draw.matrices(batch, 9, 7, dtype),
                 out = draw.matrices(batch, 5, 7, dtype);
    const auto filled = [&](Device device) {
      const auto copy = [&](const Tensor& x) {
        const Tensor there = Tensor::empty_strided(x.sizes(), x.strides(), x.dtype(), device);
        there.copy_from(x);
        return there;
      };
      const Tensor to = copy(out);
      ops::call_by_name("aten::matmul.out", copy(a), copy(b), to);
      return to.to(Device{});
    };
    EXPECT_EQ(difference(filled(kGpu), filled({}), tolerance_of(dtype)), "") << describe(out);
  }
}

TEST_F(CudaProducts, AreCallsOfTheLibraryWithoutCopies) {
  if (!has_libraries() || !counts_library_calls()) GTEST_SKIP() << "the libraries are off, or are NVIDIA's";
  const auto on_gpu = [](const Dims& sizes) { return Tensor::empty(sizes, DType::kFloat32).to(kGpu); };
  const auto calls_of = [](const char* name, const std::vector<Value>& arguments) {
    const uint64_t before = library_calls();
    const ops::Op& op = ops::get_op(name);
    ops::run(op, ops::bind(op, arguments));
    return library_calls() - before;
  };
  const Tensor square = on_gpu({12, 12});
  EXPECT_EQ(calls_of("aten::mm", {square, square}), 1u);
  EXPECT_EQ(calls_of("aten::mm", {turned(square), square}), 1u);
  EXPECT_EQ(calls_of("aten::mm", {square, turned(square)}), 1u);
  EXPECT_EQ(calls_of("aten::linear", {on_gpu({3, 5, 12}), square, on_gpu({12})}), 1u);
  EXPECT_EQ(calls_of("aten::addmm", {on_gpu({12}), square, square, 1, 1}), 1u);
  EXPECT_EQ(calls_of("aten::bmm", {on_gpu({4, 3, 5}), on_gpu({4, 5, 2})}), 1u);
  // Two sentences of four heads, side by side in memory.
  const Tensor heads = on_gpu({2, 6, 4, 8}).as_view({2, 4, 6, 8}, {192, 8, 32, 1}, 0);
  const Tensor keys = heads.as_view({2, 4, 8, 6}, {192, 8, 1, 32}, 0);
  EXPECT_EQ(calls_of("aten::matmul", {heads, keys}), 2u);
  // No element has a neighbor: tiles of our own. They also have the integers.
  EXPECT_EQ(calls_of("aten::mm", {on_gpu({12, 24, 2}).as_view({12, 12}, {48, 2}, 0), square}), 0u);
  EXPECT_EQ(calls_of("aten::mm", {square.to(DType::kInt64), square.to(DType::kInt64)}), 0u);
}

// 1 + 2^-12 is 1 in TF32.
TEST_F(CudaProducts, RoundToTf32WhereItIsAllowed) {
  if (!has_libraries()) GTEST_SKIP() << "the libraries are off";
  const auto first_of = [](DType dtype) {
    const Tensor a = ops::call_by_name("aten::full_like", Tensor::empty(Dims{8, 8}, dtype).to(kGpu), 1 + 0x1p-12),
                 one = ops::call_by_name("aten::ones_like", a);
    return ops::call_by_name("aten::mm", a, one).to(Device{}).to(DType::kFloat64).data<double>()[0];
  };
  EXPECT_EQ(first_of(DType::kFloat32), 8 + 0x1p-9);
  const ContextPart<&ExecutionContext::numerics> scope({.allows_tf32_products = true});
  EXPECT_EQ(first_of(DType::kFloat32), 8);
  EXPECT_EQ(first_of(DType::kFloat64), 8 + 0x1p-9);
}

// What a test gets wrong.
struct Faults {
  int64_t ld_a = 8, ld_b = 32, ld_c = 8;
  int32_t transpose_a = kOperationN;
  DataType type_b = kFloat32;
  ComputeKind compute = kCompute32F;
  bool has_bias = false, is_bias_null = false, is_a_on_host = false, is_a_elsewhere = false, is_layout_dead = false;
  int32_t batches_b = 1, batches = 1;
  int64_t batch_stride_c = 48;
  size_t a_offset = 0, c_offset = 0, bias_offset = 0, workspace_offset = 0, missing_workspace = 0;
  bool has_other_algorithm = false;
  int stream_device = 0;
};

// Products of an 8 × 32 and a 32 × 6 matrix by the twin's functions.
class Twin {
 public:
  Twin() {
#define F(RESULT, NAME, PARAMETERS) twin_function(#NAME, call_.NAME);
    TENSORD_CUBLASLT_FUNCTIONS(F)
#undef F
    cuda::check_cuda(cuda::api().allocate(0, kBytes, &memory_), "memory");
    cuda::check_cuda(cuda::api().allocate(1, kBytes, &elsewhere_), "memory");
    cuda::check_cuda(cuda::api().make_stream(0, 0, &streams_[0]), "stream");
    cuda::check_cuda(cuda::api().make_stream(1, 0, &streams_[1]), "stream");
  }
  ~Twin() {
    for (int i = 0; i < 2; ++i) {
      static_cast<void>(cuda::api().destroy_stream(streams_[i]));
      static_cast<void>(cuda::api().free(i, i == 0 ? memory_ : elsewhere_));
    }
  }
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  // "" or what the twin says.
  std::string run(const Faults& faults) {
    try {
      run_all(faults);
    } catch (const std::string& text) {
      return text;
    }
    return "";
  }

 private:
  static constexpr size_t kBytes = 16384;

  void expect(Status status) const {
    if (status != kSuccess) throw std::string(call_.cublasLtGetStatusString(status));
  }
  MatrixLayout layout(DataType type, uint64_t rows, uint64_t columns, int64_t ld, int32_t batches, int64_t stride) {
    MatrixLayout out = nullptr;
    expect(call_.cublasLtMatrixLayoutCreate(&out, type, rows, columns, ld));
    expect(call_.cublasLtMatrixLayoutSetAttribute(out, kBatchCount, &batches, sizeof(batches)));
    expect(call_.cublasLtMatrixLayoutSetAttribute(out, kBatchStride, &stride, sizeof(stride)));
    return out;
  }
  void* place(size_t offset) const { return static_cast<char*>(memory_) + offset; }

  void run_all(const Faults& faults) {
    const cuda::DeviceScope scope(0);
    Handle handle = nullptr;
    MatmulDesc desc = nullptr;
    Preference preference = nullptr;
    expect(call_.cublasLtCreate(&handle));
    expect(call_.cublasLtMatmulDescCreate(&desc, faults.compute, kFloat32));
    expect(call_.cublasLtMatmulDescSetAttribute(desc, kTransposeA, &faults.transpose_a, sizeof(int32_t)));
    void* const bias = faults.is_bias_null ? nullptr : place(faults.bias_offset);
    if (faults.has_bias) {
      expect(call_.cublasLtMatmulDescSetAttribute(desc, kEpilogue, &kEpilogueBias, sizeof(kEpilogueBias)));
      expect(call_.cublasLtMatmulDescSetAttribute(desc, kBiasPointer, &bias, sizeof(bias)));
    }
    const MatrixLayout a = layout(kFloat32, 8, 32, faults.ld_a, faults.batches, 0),
                       b = layout(faults.type_b, 32, 6, faults.ld_b, faults.batches_b * faults.batches, 0),
                       c = layout(kFloat32, 8, 6, faults.ld_c, faults.batches, faults.batch_stride_c);
    expect(call_.cublasLtMatmulPreferenceCreate(&preference));
    const uint64_t workspace_bytes = 4096;
    expect(call_.cublasLtMatmulPreferenceSetAttribute(preference, kMaxWorkspace, &workspace_bytes, sizeof(uint64_t)));
    HeuristicResult found{};
    int count = 0;
    expect(call_.cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, c, preference, 1, &found, &count));
    if (faults.has_other_algorithm) {
      const MatrixLayout other = layout(kFloat32, 8, 6, faults.ld_c + 1, faults.batches, faults.batch_stride_c);
      expect(call_.cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, other, other, preference, 1, &found, &count));
    }
    if (faults.is_layout_dead) expect(call_.cublasLtMatrixLayoutDestroy(b));
    static float on_host[8 * 32] __attribute__((aligned(256)));
    const float one = 1, none = 0;
    const void* const a_at = faults.is_a_on_host     ? on_host
                             : faults.is_a_elsewhere ? elsewhere_
                                                     : place(faults.a_offset);
    void* const c_at = place(8192 + faults.c_offset);
    expect(call_.cublasLtMatmul(handle, desc, &one, a_at, a, place(4096), b, &none, c_at, c, c_at, c, &found.algorithm,
                                place(12288 + faults.workspace_offset),
                                found.workspace_bytes - faults.missing_workspace, streams_[faults.stream_device]));
  }

  Functions call_;
  void *memory_ = nullptr, *elsewhere_ = nullptr;
  cuda::StreamHandle streams_[2] = {};
};

using CudaBlas = CudaTwins;

// NVIDIA's own library, which sets descriptors without a device: the twin answers what it does.
TEST_F(CudaBlas, TwinTakesTheAttributesThatTheLibraryTakes) {
  Functions real, twin;
#define F(RESULT, NAME, PARAMETERS)                                             \
  nvidia_function(kFile, #NAME, real.NAME);                                     \
  if (!real.NAME) GTEST_SKIP() << "there is no " << kFile << " with " << #NAME; \
  twin_function(#NAME, twin.NAME);
  TENSORD_CUBLASLT_FUNCTIONS(F)
#undef F
  const auto answers = [](const Functions& call) {
    MatmulDesc desc = nullptr;
    MatrixLayout layout = nullptr;
    Preference preference = nullptr;
    std::vector<Status> out{call.cublasLtMatmulDescCreate(&desc, kCompute32F, kFloat32),
                            call.cublasLtMatrixLayoutCreate(&layout, kFloat16, 8, 4, 9),
                            call.cublasLtMatmulPreferenceCreate(&preference)};
    const uint64_t value = 1;
    for (const size_t bytes : {size_t{4}, size_t{8}}) {
      for (const Attribute attribute : {kTransposeA, kTransposeB, kEpilogue, kBiasPointer})
        out.push_back(call.cublasLtMatmulDescSetAttribute(desc, attribute, &value, bytes));
      for (const Attribute attribute : {kBatchCount, kBatchStride})
        out.push_back(call.cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, bytes));
      for (const Attribute attribute :
           {kMaxWorkspace, kReductionMask, kAlignmentA, kAlignmentB, kAlignmentC, kAlignmentD})
        out.push_back(call.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, bytes));
    }
    call.cublasLtMatmulPreferenceDestroy(preference);
    call.cublasLtMatrixLayoutDestroy(layout);
    call.cublasLtMatmulDescDestroy(desc);
    return out;
  };
  EXPECT_EQ(answers(twin), answers(real));
}

TEST_F(CudaBlas, TwinTakesWhatIsRight) {
  Twin twin;
  EXPECT_EQ(twin.run({}), "");
  EXPECT_EQ(twin.run({.ld_a = 9, .ld_b = 33, .ld_c = 10}), "");
  EXPECT_EQ(twin.run({.has_bias = true}), "");
  EXPECT_EQ(twin.run({.batches = 3}), "");
}

TEST_F(CudaBlas, TwinRefusesLayoutsThatDoNotFit) {
  Twin twin;
  EXPECT_EQ(twin.run({.ld_a = 7}), "A's leading dimension is less than its rows");
  EXPECT_EQ(twin.run({.ld_c = 1}), "C's leading dimension is less than its rows");
  EXPECT_EQ(twin.run({.transpose_a = kOperationT}), "A's columns are not B's rows");
  EXPECT_EQ(twin.run({.type_b = kFloat16}), "B has another type than A");
  EXPECT_EQ(twin.run({.compute = kCompute64F}), "a type of computing that does not fit the matrices");
  EXPECT_EQ(twin.run({.batches_b = 2, .batches = 2}), "batches of different numbers");
  EXPECT_EQ(twin.run({.batches = 2, .batch_stride_c = 16}), "batches of D that overlap");
  EXPECT_EQ(twin.run({.is_layout_dead = true}), "B was not made, or is destroyed");
}

TEST_F(CudaBlas, TwinRefusesMemoryThatIsNotTheProducts) {
  Twin twin;
  EXPECT_EQ(twin.run({.is_a_on_host = true}), "A is not memory of the device");
  EXPECT_EQ(twin.run({.is_a_elsewhere = true}), "A is not memory of the device");
  EXPECT_EQ(twin.run({.a_offset = 2}), "A is not aligned to its elements");
  EXPECT_EQ(twin.run({.a_offset = 4}), "A is less aligned than the algorithm needs");
  EXPECT_EQ(twin.run({.ld_c = 1 << 20}), "C ends beyond what was allocated");
  EXPECT_EQ(twin.run({.has_bias = true, .is_bias_null = true}), "an epilogue with a bias, and no bias");
  EXPECT_EQ(twin.run({.has_bias = true, .bias_offset = 16380}), "the bias ends beyond what was allocated");
  EXPECT_EQ(twin.run({.stream_device = 1}), "a stream of another device");
}

TEST_F(CudaBlas, TwinRefusesWorkspacesAndAlgorithmsOfOthers) {
  Twin twin;
  EXPECT_EQ(twin.run({.missing_workspace = 1}), "the workspace is smaller than the algorithm needs");
  EXPECT_EQ(twin.run({.workspace_offset = 16}), "the workspace is not aligned to 256");
  EXPECT_EQ(twin.run({.workspace_offset = 3840}), "the workspace ends beyond what was allocated");
  EXPECT_EQ(twin.run({.has_other_algorithm = true}), "the algorithm is for another product");
}

}  // namespace
}  // namespace tensord::cuda_products_test
