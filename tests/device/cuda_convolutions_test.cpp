// Convolutions on CUDA's devices by cuDNN: which ones are its, and what its twin (tests/cuda/emulated) refuses. Their
// numbers are those of cuda_layers_test. With TENSORD_CUDA naming the emulated devices' library.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/ops/run.h"
#include "kernels/cuda/libraries/cudnn_api.h"
#include "ops/factory.h"
#include "tests/device/cuda_library_fixture.h"

namespace tensord::cuda_convolutions_test {
namespace {

using namespace cuda_tests;
using namespace cuda::cudnn;
using ops::Value;
using CudaConvolutions = CudaTwins;
using CudaDnnTwin = CudaTwins;

Value ints(const Dims& numbers) { return ops::make_int_list(numbers); }

// 1 + 2^-12 is 1 in TF32.
TEST_F(CudaConvolutions, RoundToTf32WhereItIsAllowed) {
  if (!has_libraries()) GTEST_SKIP() << "the libraries are off";
  const auto first_of = [](DType dtype) {
    const Tensor image =
                     ops::call_by_name("aten::full_like", Tensor::empty(Dims{1, 4, 3, 3}, dtype).to(kGpu), 1 + 0x1p-12),
                 weight = ops::call_by_name("aten::ones_like", Tensor::empty(Dims{2, 4, 1, 1}, dtype).to(kGpu));
    const ops::Op& op = ops::get_op("aten::conv2d");
    const Tensor out = ops::run(op, ops::bind(op, {image, weight})).front().to_tensor();
    return out.to(Device{}).to(DType::kFloat64).data<double>()[0];
  };
  EXPECT_EQ(first_of(DType::kFloat32), 4 + 0x1p-10);
  const ContextPart<&ExecutionContext::numerics> scope({.allows_tf32_convolutions = true});
  EXPECT_EQ(first_of(DType::kFloat32), 4);
  EXPECT_EQ(first_of(DType::kFloat64), 4 + 0x1p-10);
}

TEST_F(CudaConvolutions, AreCallsOfTheLibrary) {
  if (!has_libraries()) GTEST_SKIP() << "the libraries are off";
  const auto calls_of = [](const std::vector<Value>& arguments, const char* name = "aten::convolution") {
    const uint64_t before = library_calls();
    const ops::Op& op = ops::get_op(name);
    ops::run(op, ops::bind(op, arguments));
    synchronize(kGpu);
    return library_calls() - before;
  };
  const auto on_gpu = [](const Dims& sizes, DType dtype = DType::kFloat32) {
    return ops::zeros(sizes, {.dtype = dtype, .device = kGpu});
  };
  const auto conv = [&](const Tensor& x, const Tensor& weight, const Dims& stride, const Dims& padding, bool is_turned,
                        int64_t groups) {
    const Dims ones(stride.size(), 1), zeros(stride.size(), 0);
    return calls_of({x, weight, Value(), ints(stride), ints(padding), ints(ones), is_turned, ints(zeros), groups});
  };
  const Tensor x = on_gpu({2, 4, 9, 9}), weight = on_gpu({6, 4, 3, 3});
  EXPECT_EQ(conv(x, weight, {2, 2}, {1, 1}, false, 1), 1u);
  EXPECT_EQ(conv(x, on_gpu({4, 3, 3, 3}), {2, 2}, {1, 1}, true, 1), 1u);
  EXPECT_EQ(conv(x, on_gpu({8, 2, 3, 3}), {1, 1}, {0, 0}, false, 2), 1u);
  EXPECT_EQ(conv(on_gpu({2, 4, 9}), on_gpu({6, 4, 3}), {1}, {1}, false, 1), 1u);
  EXPECT_EQ(conv(on_gpu({2, 4, 5, 5, 5}), on_gpu({6, 4, 3, 3, 3}), {1, 1, 1}, {1, 1, 1}, false, 1), 1u);
  EXPECT_EQ(
      conv(on_gpu({2, 4, 9, 9}, DType::kBFloat16), on_gpu({6, 4, 3, 3}, DType::kBFloat16), {1, 1}, {1, 1}, false, 1),
      1u);
  // One more zero on one side than on the other, and integers: kernels of our own.
  EXPECT_EQ(calls_of({x, on_gpu({6, 4, 2, 2}), Value(), ints({1, 1}), std::string("same"), ints({1, 1}), 1},
                     "aten::conv2d.padding"),
            0u);
}

struct Faults {
  int32_t samples = 2, channels = 4, groups = 1, grid_height = 7, stride = 1;
  DataType grid_type = kFloat32, compute = kFloat32;
  size_t offset = 0, missing = 0;
  bool has_no_stream = false, is_on_host = false, has_first_algorithm = false, has_no_workspace = false,
       is_desc_dead = false;
};

// The forward of 4 → 6 channels with 3 × 3 windows over 9 × 9 places by the twin's functions.
class Twin {
 public:
  Twin() {
#define F(RESULT, NAME, PARAMETERS) twin_function(#NAME, call_.NAME);
    TENSORD_CUDNN_FUNCTIONS(F)
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
  std::string run(const Faults& faults) {
    const cuda::DeviceScope scope(0);
    return describe(faults) && compute(faults) ? "" : refusal();
  }

 private:
  static constexpr size_t kBytes = 32768;
  static bool is_fine(Status status) { return status == kSuccess; }
  void* place(size_t offset) const { return static_cast<char*>(memory_) + offset; }

  bool set(TensorDesc& desc, DataType type, const std::vector<int32_t>& sizes) const {
    const int32_t strides[] = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    return is_fine(call_.cudnnCreateTensorDescriptor(&desc)) &&
           is_fine(call_.cudnnSetTensorNdDescriptor(desc, type, 4, sizes.data(), strides));
  }
  bool describe(const Faults& faults) {
    const int32_t filter[] = {6, 4, 3, 3}, padding[] = {0, 0}, stride[] = {faults.stride, 1}, dilation[] = {1, 1};
    return set(image_, kFloat32, {faults.samples, faults.channels, 9, 9}) &&
           set(grid_, faults.grid_type, {2, 6, faults.grid_height, 7}) &&
           is_fine(call_.cudnnCreateFilterDescriptor(&weight_)) &&
           is_fine(call_.cudnnSetFilterNdDescriptor(weight_, kFloat32, kDense, 4, filter)) &&
           is_fine(call_.cudnnCreateConvolutionDescriptor(&conv_)) &&
           is_fine(call_.cudnnSetConvolutionNdDescriptor(conv_, 2, padding, stride, dilation, kCrossCorrelation,
                                                         faults.compute)) &&
           is_fine(call_.cudnnSetConvolutionGroupCount(conv_, faults.groups));
  }
  bool compute(const Faults& faults) {
    Handle handle = nullptr;
    AlgorithmPerf found[2];
    int32_t count = 0;
    const float one = 1, zero = 0;
    static float on_host[2 * 4 * 9 * 9];
    const void* const x = faults.is_on_host ? on_host : place(faults.offset);
    return is_fine(call_.cudnnCreate(&handle)) &&
           (faults.has_no_stream || is_fine(call_.cudnnSetStream(handle, stream_))) &&
           is_fine(
               call_.cudnnGetConvolutionForwardAlgorithm_v7(handle, image_, weight_, conv_, grid_, 2, &count, found)) &&
           (!faults.is_desc_dead || is_fine(call_.cudnnDestroyTensorDescriptor(grid_))) &&
           is_fine(call_.cudnnConvolutionForward(
               handle, &one, image_, x, weight_, place(8192), conv_,
               found[faults.has_first_algorithm ? 0 : 1].algorithm, faults.has_no_workspace ? nullptr : place(16384),
               found[1].workspace_bytes - faults.missing, &zero, grid_, place(24576)));
  }

  Functions call_;
  void* memory_ = nullptr;
  cuda::StreamHandle stream_ = nullptr;
  TensorDesc image_ = nullptr, grid_ = nullptr;
  FilterDesc weight_ = nullptr;
  ConvDesc conv_ = nullptr;
};

// NVIDIA's own library, which sets descriptors and knows sizes of results without a device: the twin takes what it
// takes, and wants the size that it gives.
TEST_F(CudaDnnTwin, TakesTheDescriptorsThatTheLibraryTakes) {
  Functions real, twin;
#define F(RESULT, NAME, PARAMETERS)                                             \
  real.NAME = nullptr;                                                          \
  nvidia_function(kFile, #NAME, real.NAME);                                     \
  if (!real.NAME) GTEST_SKIP() << "there is no " << kFile << " with " << #NAME; \
  twin_function(#NAME, twin.NAME);
  TENSORD_CUDNN_FUNCTIONS(F)
#undef F
  Status (*sizes_of_result)(ConvDesc, TensorDesc, FilterDesc, int32_t, int32_t*) = nullptr;
  nvidia_function(kFile, "cudnnGetConvolutionNdForwardOutputDim", sizes_of_result);
  ASSERT_NE(sizes_of_result, nullptr);
  std::mt19937 random(7);
  for (int run = 0; run < 100; ++run) {
    const auto number = [&](int low, int high) { return low + static_cast<int>(random() % (high - low + 1)); };
    const int32_t dims = number(4, 5), spatial = dims - 2, groups = number(1, 2);
    std::vector<int32_t> image{2, 4}, filter{6, 4 / groups}, strides(dims, 1), padding, stride, dilation;
    for (int d = 0; d < spatial; ++d) {
      image.push_back(number(5, 9)), filter.push_back(number(1, 3));
      padding.push_back(number(-1, 2)), stride.push_back(number(0, 3)), dilation.push_back(number(1, 2));
    }
    for (int d = dims - 2; d >= 0; --d) strides[d] = strides[d + 1] * image[d + 1];
    const auto answers = [&](const Functions& call, std::vector<int32_t>* result) {
      TensorDesc x = nullptr;
      FilterDesc w = nullptr;
      ConvDesc conv = nullptr;
      std::vector<bool> out{
          call.cudnnCreateTensorDescriptor(&x) == kSuccess,
          call.cudnnCreateFilterDescriptor(&w) == kSuccess,
          call.cudnnCreateConvolutionDescriptor(&conv) == kSuccess,
          call.cudnnSetTensorNdDescriptor(x, kFloat32, dims, image.data(), strides.data()) == kSuccess,
          call.cudnnSetFilterNdDescriptor(w, kFloat32, kDense, dims, filter.data()) == kSuccess,
          call.cudnnSetConvolutionNdDescriptor(conv, spatial, padding.data(), stride.data(), dilation.data(),
                                               kCrossCorrelation, kFloat32) == kSuccess,
          call.cudnnSetConvolutionGroupCount(conv, groups) == kSuccess,
          call.cudnnSetConvolutionMathType(conv, kFmaMath) == kSuccess};
      if (result && out[5]) {
        EXPECT_EQ(sizes_of_result(conv, x, w, dims, result->data()), kSuccess);
      }
      call.cudnnDestroyTensorDescriptor(x), call.cudnnDestroyFilterDescriptor(w);
      call.cudnnDestroyConvolutionDescriptor(conv);
      return out;
    };
    std::vector<int32_t> grid(dims, 0);
    const std::vector<bool> expected = answers(real, &grid);
    EXPECT_EQ(answers(twin, nullptr), expected) << run;
    for (int d = 0; d < spatial && expected[5]; ++d) {
      const int window = dilation[d] * (filter[2 + d] - 1) + 1;
      EXPECT_EQ(grid[2 + d], (image[2 + d] + 2 * padding[d] - window) / stride[d] + 1) << run;
    }
  }
}

TEST_F(CudaDnnTwin, RefusesWhatCudnnForbids) {
  Twin twin;
  EXPECT_EQ(twin.run({}), "");
  EXPECT_EQ(twin.run({.samples = 3}), "different numbers of samples");
  EXPECT_EQ(twin.run({.channels = 5}), "the image's channels are not the weight's");
  EXPECT_EQ(twin.run({.channels = 16, .groups = 4}), "the grid's channels are not the weight's");
  EXPECT_EQ(twin.run({.grid_height = 6}), "the grid has another size than the convolution gives");
  EXPECT_EQ(twin.run({.stride = 2}), "the grid has another size than the convolution gives");
  EXPECT_EQ(twin.run({.stride = 0}), "a padding, stride or dilation that is out of range");
  EXPECT_EQ(twin.run({.grid_type = kFloat16}), "tensors of different types");
  EXPECT_EQ(twin.run({.compute = kFloat16}), "a type of computing that does not fit the tensors");
  EXPECT_EQ(twin.run({.offset = 2}), "the image is not aligned to its elements");
  EXPECT_EQ(twin.run({.offset = 32768 - 64}), "the image ends beyond what was allocated");
  EXPECT_EQ(twin.run({.is_on_host = true}), "the image is not memory of the device");
  EXPECT_EQ(twin.run({.missing = 1}), "the workspace is smaller than the algorithm needs");
  EXPECT_EQ(twin.run({.has_no_workspace = true}), "the workspace is not memory of the device");
  EXPECT_EQ(twin.run({.has_no_stream = true}), "no stream, or a stream of another device");
  EXPECT_EQ(twin.run({.has_first_algorithm = true}), "an algorithm that is not deterministic, or not known");
  EXPECT_EQ(twin.run({.is_desc_dead = true}), "the grid's descriptor was not made, or is destroyed");
}

}  // namespace
}  // namespace tensord::cuda_convolutions_test
