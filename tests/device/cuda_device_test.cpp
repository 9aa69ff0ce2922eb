// CUDA's runtime and what the emulated devices refuse (tests/cuda/emulated); with TENSORD_CUDA naming their library.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/nn/layers/layers.h"
#include "core/nn/layers/transformer.h"
#include "core/ops/attributes/runs_on_host.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "core/tensor/cuda/cuda_runtime.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/tensor.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_device_test {
namespace {

using namespace cuda_tests;
using CudaFaults = CudaDevice;

Tensor numbers(int64_t count, DType dtype = DType::kFloat32) {
  const Tensor out = Tensor::empty(Dims{count}, DType::kFloat32);
  for (int64_t i = 0; i < count; ++i) out.data<float>()[i] = static_cast<float>(i % 113) - 40.25f;
  return out.to(dtype);
}

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.dtype(), b.dtype());
  const Tensor x = a.to(Device{}).contiguous(), y = b.contiguous();
  EXPECT_EQ(std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()), 0)
      << describe(a) << ": " << x.to(DType::kFloat64).data<double>()[0] << " and "
      << y.to(DType::kFloat64).data<double>()[0];
}

TEST_F(CudaDevice, CopiesBetweenDTypesAsTheProcessor) {
  const DType all[] = {DType::kUInt8, DType::kInt8,     DType::kInt16,     DType::kInt32,
                       DType::kInt64, DType::kFloat16,  DType::kFloat32,   DType::kFloat64,
                       DType::kBool,  DType::kBFloat16, DType::kComplex64, DType::kComplex128};
  for (const DType from : all) {
    const Tensor source = numbers(1000, from), there = source.to(kGpu);
    for (const DType to : all) expect_equal(there.to(to), source.to(to));
  }
}

TEST_F(CudaDevice, CopiesStridesAsTheProcessor) {
  for (const DType dtype : {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128}) {
    const Tensor source = numbers(3 * 40 * 50, dtype), there = source.to(kGpu);
    const auto views = [](const Tensor& x) {
      return std::vector<Tensor>{x.as_view({3, 50, 40}, {2000, 1, 50}, 0),  // transposed
                                 x.as_view({50, 3, 40}, {1, 2000, 50}, 0),
                                 x.as_view({3, 40, 25}, {2000, 50, 2}, 1),  // every other
                                 x.as_view({7, 50}, {0, 1}, 100),           // repeated
                                 x.as_view({100}, {1}, 3)};                 // begins anywhere
    };
    const std::vector<Tensor> expected = views(source), got = views(there);
    for (size_t i = 0; i < got.size(); ++i) expect_equal(got[i].clone(), expected[i].clone());
  }
}

// The host may write its memory when the call returns, though the device has not begun to copy.
TEST_F(CudaDevice, ReadsHostMemoryBeforeACopyReturns) {
  for (const int64_t count : {100, 100'000, 5'000'000}) {
    for (const bool is_pinned : {false, true}) {
      const Tensor source = is_pinned ? pin_memory(numbers(count), kCUDA) : numbers(count);
      const Tensor there = source.to(kGpu);
      std::memset(source.raw_data(), 0, source.size_bytes());
      expect_equal(there, numbers(count));
    }
  }
}

TEST_F(CudaDevice, CopiesBetweenDevices) {
  const Tensor there = numbers(1000).to(kGpu);
  expect_equal(there.to(kOther).to(kGpu), numbers(1000));
}

TEST_F(CudaDevice, StreamsAreOrderedByEvents) {
  const std::unique_ptr<DeviceStream> urgent = cuda::make_stream(0, -100);
  const Tensor x = numbers(1000).to(kGpu);
  const std::unique_ptr<DeviceEvent> written = device_runtime(kGpu).make_event();
  written->record(current_stream(kGpu));
  EXPECT_FALSE(written->is_done());
  written->hold(*urgent);
  const ContextPart<&ExecutionContext::stream> scope(urgent.get());
  const Tensor y = ops::call_by_name("aten::add.Tensor", x, x);
  expect_equal(y, ops::call_by_name("aten::add.Tensor", numbers(1000), numbers(1000)));
}

TEST_F(CudaDevice, ReportsAnErrorOfAKernelOnce) {
  const Tensor a = numbers(100, DType::kInt64).to(kGpu), zeros = ops::call_by_name("aten::zeros_like", a);
  const Tensor quotient = ops::call_by_name("aten::floor_divide", a, zeros);
  try {
    synchronize(kGpu);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "aten::floor_divide: ZeroDivisionError");
  }
  synchronize(kGpu);
  const Tensor index = Tensor::scalar(int64_t{7}).to(kGpu);
  const Tensor row = ops::call_by_name("aten::index_select", a, 0, index);
  try {
    synchronize(kGpu);
  } catch (const Error& error) {
    FAIL() << error.what();
  }
}

TEST_F(CudaDevice, NamesAnIndexOutOfRange) {
  const Tensor a = numbers(12).to(kGpu), index = Tensor::scalar(int64_t{12}).to(kGpu);
  const Tensor picked = ops::call_by_name("aten::index_select", a, 0, index);
  try {
    synchronize(kGpu);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(std::string(error.what()), "aten::index_select: index out of range in self");
  }
}

TEST_F(CudaDevice, OutOfMemoryIsTheAnswerToOneCall) {
  const Tensor kept = numbers(10).to(kGpu);
  try {
    const Tensor huge = Tensor::empty(Dims{int64_t{1} << 40}, DType::kFloat32, kGpu);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  }
  expect_equal(ops::call_by_name("aten::add.Tensor", kept, kept),
               ops::call_by_name("aten::add.Tensor", numbers(10), numbers(10)));
}

// --- operators that run on the host

// self += other + the sum of `more`; undefined is nothing.
OP("test::gather_(Tensor(a!) self, Tensor? other, Tensor[] more) -> Tensor(a!)")
    .impl([](const Tensor& self, const std::optional<Tensor>& other, const std::vector<Tensor>& more) {
      if (self.size(0) == 5) fail(ErrorCode::kInvalidArgument, "five rows");
      const auto add = [&](const Tensor& x) {
        for (int64_t i = 0; i < self.size(0); ++i) {
          for (int64_t j = 0; j < self.size(1); ++j)
            self.data<float>()[i * self.stride(0) + j * self.stride(1)] +=
                x.data<float>()[i * x.stride(0) + j * x.stride(1)];
        }
      };
      if (other) add(*other);
      for (const Tensor& x : more) add(x);
      return self;
    })
    .set<ops::RunsOnHost>("a test");
OP("test::second_row(Tensor self) -> Tensor")
    .impl([](const Tensor& self) {
      return self.as_view({self.size(1)}, {self.stride(1)}, self.offset() + self.stride(0));
    })
    .set<ops::RunsOnHost>("a test");
OP("test::several(Tensor? self, Device? device=None) -> (Tensor, Tensor[], int)")
    .impl([](const std::optional<Tensor>& self, std::optional<Device> device) {
      const Tensor made = Tensor::empty(Dims{3}, DType::kFloat32, device.value_or(Device{}));
      for (int i = 0; i < 3; ++i) made.data<float>()[i] = 2;
      const std::vector<Tensor> both{self ? *self : made, made};
      return ops::Returns{{made, ops::make_tensor_list(both), 7}};
    })
    .set<ops::RunsOnHost>("a test");

Tensor matrix(int64_t rows, int64_t columns) {
  const Tensor x = numbers(rows * columns);
  return x.as_view({rows, columns}, {columns, 1}, 0);
}

TEST_F(CudaDevice, CallsOnTheHostWriteWhatTheyWrite) {
  const Tensor expected = matrix(3, 4).clone(), other = matrix(4, 3).clone();
  const Tensor there = matrix(3, 4).to(kGpu), turned_other = turned(other.to(kGpu));
  ops::call_by_name("test::gather_", expected, turned(other), std::vector<Tensor>{turned(other), turned(other)});
  const uint32_t version = there.version();
  const Tensor got = ops::call_by_name("test::gather_", there, turned_other,
                                       std::vector<Tensor>{turned_other, turned(other.to(kGpu))});
  EXPECT_TRUE(got.is_same(there));
  EXPECT_GT(there.version(), version);
  expect_equal(there, expected);
  // Every second row of other memory.
  const Tensor whole = matrix(6, 4).to(kGpu), rows = whole.as_view({3, 4}, {8, 1}, 4);
  const Tensor here = matrix(6, 4).clone();
  ops::call_by_name("test::gather_", rows, ops::Value(), std::vector<Tensor>{there});
  ops::call_by_name("test::gather_", here.as_view({3, 4}, {8, 1}, 4), ops::Value(), std::vector<Tensor>{expected});
  expect_equal(whole, here);
}

TEST_F(CudaDevice, CallsOnTheHostRefuseWhatCopiesCannotShow) {
  const Tensor there = matrix(3, 4).to(kGpu), none = matrix(5, 4).to(kGpu);
  const auto gather = [](const Tensor& self, const Tensor& other) {
    return message_of([&] { ops::call_by_name("test::gather_", self, other, std::vector<Tensor>{}); });
  };
  EXPECT_EQ(gather(there.as_view({2, 4}, {4, 1}, 0), there.as_view({2, 4}, {4, 1}, 4)),
            "test::gather_: an argument that is written shares memory with another one; clone() one");
  EXPECT_EQ(gather(there, matrix(3, 4)),
            "test::gather_: Expected all tensors to be on the same device, but found cuda:0 and cpu");
  EXPECT_EQ(gather(none, none), "test::gather_: five rows");
  EXPECT_EQ(message_of([&] {
              ops::call_by_name("test::second_row", there.as_view({2, 2}, {1, 0}, 0));
            }),
            "test::second_row: a result shares the memory of float32[2, 2], whose copy on the host is laid out "
            "differently");
}

TEST_F(CudaDevice, ResultsOfCallsOnTheHostAreTheDevices) {
  const Tensor there = matrix(3, 4).to(kGpu);
  const Tensor row = ops::call_by_name("test::second_row", turned(there));
  EXPECT_EQ(row.storage(), there.storage());
  expect_equal(row, turned(matrix(3, 4)).as_view({3}, {4}, 1).clone());
  for (const bool has_tensor : {true, false}) {
    const ops::Op& op = ops::get_op("test::several");
    const std::vector<ops::Value> results =
        ops::run(op, ops::bind(op, {has_tensor ? ops::Value(there) : ops::Value(), kGpu}));
    EXPECT_EQ(results[0].to_tensor().device(), kGpu);
    const auto& list = results[1].to_list()->items;
    EXPECT_EQ(list[0].to_tensor().is_same(there), has_tensor);
    EXPECT_EQ(list[1].to_tensor().device(), kGpu);
    EXPECT_EQ(results[2].to_int(), 7);
  }
}

// The error of what the device did before is not the call's.
TEST_F(CudaDevice, CallsOnTheHostReportEarlierErrorsAsTheyAre) {
  const Tensor a = numbers(100, DType::kInt64).to(kGpu), zeros = ops::call_by_name("aten::zeros_like", a);
  const Tensor quotient = ops::call_by_name("aten::floor_divide", a, zeros);
  EXPECT_EQ(message_of([&] { ops::call_by_name("test::several", quotient); }), "aten::floor_divide: ZeroDivisionError");
}

// --- models, eagerly

// Words and positions, layers, a norm and the scores of the words: BERT's shape, and GPT's with a causal mask.
class Language final : public nn::Module {
 public:
  explicit Language(bool is_causal)
      : Module("Language"),
        is_causal_(is_causal),
        words_(register_module("words", std::make_shared<nn::Embedding>(50, 32))),
        positions_(register_module("positions", std::make_shared<nn::Embedding>(20, 32))),
        layers_(register_module(
            "layers",
            std::make_shared<nn::TransformerEncoder>(
                32, 4, 2,
                nn::TransformerEncoderLayerOptions{
                    .dim_feedforward = 64, .dropout = 0, .is_gelu = true, .batch_first = true, .norm_first = is_causal},
                true))),
        head_(register_module("head", std::make_shared<nn::Linear>(32, 50))) {}
  nn::Tensors forward(const nn::Tensors& inputs) override {
    const Tensor& ids = inputs[0];
    const int64_t steps = ids.size(1);
    const Tensor places =
        ops::call_by_name("aten::arange", steps, DType::kInt64, ops::Value(), ids.device(), ops::Value());
    const Tensor x = ops::call_by_name("aten::add.Tensor", (*words_)(ids), (*positions_)(places));
    nn::Tensors given{x};
    if (is_causal_) {
      const Tensor ones = ops::call_by_name("aten::ones", Dims{steps, steps}, DType::kBool, ops::Value(), ids.device());
      given.push_back(ops::call_by_name("aten::triu", ones, 1));
    }
    return {(*head_)(layers_->forward(given)[0])};
  }

 private:
  const bool is_causal_;
  const std::shared_ptr<nn::Embedding> words_, positions_;
  const std::shared_ptr<nn::TransformerEncoder> layers_;
  const std::shared_ptr<nn::Linear> head_;
};

TEST_F(CudaDevice, LanguageModelsAsOnTheHost) {
  for (const bool is_causal : {false, true}) {
    Language model(is_causal);
    model.eval();
    Tensor ids = Tensor::empty(Dims{2, 11}, DType::kInt64);
    for (int64_t i = 0; i < ids.numel(); ++i) ids.data<int64_t>()[i] = i * 7 % 50;
    const GradModeGuard no_grad({.is_enabled = false});
    const Tensor expected = model.forward({ids})[0];
    model.to(kGpu);
    const Tensor got = model.forward({ids.to(kGpu)})[0];
    EXPECT_EQ(got.device(), kGpu);
    const Tensor here = got.to(Device{}).contiguous();
    for (int64_t i = 0; i < here.numel(); ++i)
      ASSERT_NEAR(here.data<float>()[i], expected.data<float>()[i], 1e-5) << "causal " << is_causal << ", " << i;
  }
}

TEST_F(CudaFaults, LaunchesAreRefused) {
  const Tensor out = Tensor::empty(Dims{64}, DType::kFloat32, kGpu);
  EXPECT_EQ(run_tested("block too large", out), "launch: a block of a size that CUDA refuses");
  EXPECT_EQ(run_tested("empty grid", out), "launch: a grid of a size that CUDA refuses");
  EXPECT_EQ(run_tested("grid too high", out), "launch: a grid of a size that CUDA refuses");
  EXPECT_EQ(run_tested("shared not allowed", out), "launch: more shared memory than the kernel was allowed");
  EXPECT_EQ(run_tested("plain", out), "");
}

TEST_F(CudaFaults, UnsetSharedMemoryIsNaN) {
  const Tensor out = Tensor::empty(Dims{64}, DType::kFloat32, kGpu);
  ASSERT_EQ(run_tested("unset shared", out), "");
  const Tensor here = out.to(Device{});
  EXPECT_EQ(here.data<float>()[0], 1);
  EXPECT_NE(here.data<float>()[1], here.data<float>()[1]);
}

// By a table of what kernels take of a chip.
TEST_F(CudaFaults, LaunchesBeyondAChipsRegistersAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string file = ::testing::TempDir() + "cuda_limits.txt";
  const auto launched = [&](const char* line, const char* name) {
    std::ofstream(file) << line << " tensord::cuda::(anonymous namespace)::plain(tensord::cuda::DeviceAddress)\n";
    setenv("TENSORD_CUDA_LIMITS", file.c_str(), 1);
    const Tensor out = Tensor::empty(Dims{1024}, DType::kFloat32, kGpu);
    std::fprintf(stderr, "launched: %s.", run_tested(name, out).c_str());
    std::_Exit(0);
  };
  const auto done = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(launched("64 0", "many registers"), done, "launched: \\.");
  EXPECT_EXIT(launched("65 0", "many registers"), done, "launched: launch: more registers than a multiprocessor has");
  EXPECT_EXIT(launched("8 49153", "plain"), done, "launched: launch: more shared memory than the kernel was allowed");
}

// For scripts/cuda-test --sanitize, which looks at what the process ends with.
TEST_F(CudaFaults, RunsThePlantedOne) {
  const char* const name = std::getenv("TENSORD_CUDA_FAULT");
  if (!name) GTEST_SKIP() << "TENSORD_CUDA_FAULT names none";
  const Tensor out = Tensor::empty(Dims{64}, DType::kFloat32, kGpu);
  EXPECT_EQ(run_tested(name, out), "");
}

// A fault breaks the process's use of CUDA, as on a chip; so each has a process of its own.
void end_with(const char* name) {
  const Tensor out = Tensor::empty(Dims{64}, DType::kFloat32, kGpu);
  const std::string first = run_tested(name, out);
  std::string later;
  try {
    out.to(Device{});
  } catch (const Error& error) {
    later = error.what();
  }
  std::fprintf(stderr, "%s; later: %s; lost: %s", first.c_str(), later.c_str(), cuda::why_lost());
  std::_Exit(0);
}
TEST_F(CudaFaults, FaultsLoseTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto done = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(end_with("two barriers"), done,
              "threads of a block wait at different barriers.*later: .*a kernel failed.*lost: .*a kernel failed");
  EXPECT_EXIT(end_with("missing lanes"), done, "a barrier that not all come to|a mask with a lane that is not there");
  EXPECT_EXIT(end_with("misaligned"), done, "an access that is not aligned");
  EXPECT_EXIT(end_with("too much shared"), done, "more shared memory than there is");
}

TEST_F(CudaFaults, UnfairOrdersFindAMissingBarrier) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    const Tensor out = Tensor::empty(Dims{64}, DType::kInt32, kGpu);
    run_tested("missing barrier", out);
    const Tensor here = out.to(Device{});
    int wrong = 0;
    for (int i = 0; i < 64; ++i) wrong += here.data<int32_t>()[i] != 24;
    std::fprintf(stderr, "%s", wrong == 0 ? "right" : "wrong");
    std::_Exit(0);
  };
  // The seed is read when the library is opened, which the child does anew.
  setenv("TENSORD_CUDA_SEED", "7", 1);
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "wrong");
  unsetenv("TENSORD_CUDA_SEED");
}

}  // namespace
}  // namespace tensord::cuda_device_test
