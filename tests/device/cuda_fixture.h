#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/tensor.h"

// What tests on CUDA's devices share: the emulated ones, where TENSORD_CUDA names their library.
namespace tensord::cuda_tests {

inline constexpr Device kGpu{kCUDA, 0}, kOther{kCUDA, 1};

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() > 0) return;
    // Where the library is named, there must be devices.
    const char* const named = std::getenv("TENSORD_CUDA");
    if (named && *named) FAIL() << cuda::why_no_devices();
    GTEST_SKIP() << cuda::why_no_devices();
  }
};

// What the call throws, or "".
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Runs a kernel of tests/cuda/emulated/faults.cu; "" or what it ended with.
inline std::string run_tested(const char* name, const Tensor& out) {
  void* const library = dlopen(std::getenv("TENSORD_CUDA"), RTLD_NOW);
  using Run = bool (*)(const char*, void*, cuda::StreamHandle);
  const auto run = library ? reinterpret_cast<Run>(dlsym(library, "tensord_cuda_run_tested")) : nullptr;
  if (!run) return "these are not the emulated devices";
  DeviceStream& stream = current_stream(kGpu);
  const cuda::DeviceScope scope(0);
  if (!run(name, out.raw_data(), static_cast<cuda::StreamHandle>(stream.handle()))) return "no such kernel";
  return message_of([&] {
    cuda::check_cuda(cuda::api().check_launch(), "launch");
    stream.synchronize();
  });
}

// How many pieces of work the current stream of kGpu was ever given; only the emulated devices know.
inline std::optional<uint64_t> queued_work() {
  const char* const named = std::getenv("TENSORD_CUDA");
  void* const library = named ? dlopen(named, RTLD_NOW) : nullptr;
  using Count = uint64_t (*)(cuda::StreamHandle);
  const auto count = library ? reinterpret_cast<Count>(dlsym(library, "tensord_cuda_queued_work")) : nullptr;
  if (!count) return std::nullopt;
  return count(static_cast<cuda::StreamHandle>(current_stream(kGpu).handle()));
}

// --- results that are compared with the processor's

// Few different values, in no order.
inline Tensor values_of(const Dims& sizes, DType dtype, int64_t kinds = 23) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  constexpr double kSpecial[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY};
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t mixed = i * i % 1009 * 31 % kinds;
    out.data<double>()[i] = is_floating(dtype) && mixed < 5 ? kSpecial[mixed] : static_cast<double>(mixed - 9) / 2;
  }
  return out.to(dtype);
}
inline Tensor turned(const Tensor& x) {
  return x.as_view({x.size(1), x.size(0)}, {x.stride(1), x.stride(0)}, x.offset());
}

// "" or what differs: bits, but for NaN's and what lies within `tolerance`, relative to numbers larger than 1.
inline std::string difference(const Tensor& a, const Tensor& b, double tolerance = 0) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return concat("got ", describe(a), ", expected ", describe(b));
  const Tensor x = a.contiguous(), y = b.contiguous();
  const size_t width = size_of(x.dtype());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto at = static_cast<size_t>(i) * width;
    const bool is_same = std::memcmp(static_cast<const char*>(x.raw_data()) + at,
                                     static_cast<const char*>(y.raw_data()) + at, width) == 0;
    if (is_same) continue;
    const double got = x.to(DType::kFloat64).data<double>()[i], expected = y.to(DType::kFloat64).data<double>()[i];
    if (std::isnan(got) && std::isnan(expected)) continue;
    if (std::abs(got - expected) < tolerance * std::max(1.0, std::abs(expected))) continue;
    return concat("element ", i, " is ", got, ", expected ", expected);
  }
  return "";
}

inline std::vector<ops::Value> called(const ops::Op& op, std::vector<ops::Value> arguments, Device device) {
  for (ops::Value& value : arguments) {
    if (!value.is_tensor()) continue;
    const Tensor tensor = value.to_tensor();
    const Tensor copy = Tensor::empty_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), device);
    copy.copy_from(tensor);
    value = copy;
  }
  return ops::run(op, ops::bind(op, arguments));
}

inline void expect_as_on_host(const std::string& name, const std::vector<ops::Value>& arguments, double tolerance = 0) {
  const ops::Op& op = ops::get_op(name);
  const std::vector<ops::Value> expected = called(op, arguments, {}), got = called(op, arguments, kGpu);
  ASSERT_NE(op.kernel(kCUDA), nullptr) << name;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].is_tensor()) continue;
    EXPECT_EQ(got[i].to_tensor().device(), kGpu) << name;
    EXPECT_EQ(difference(got[i].to_tensor().to(Device{}), expected[i].to_tensor(), tolerance), "")
        << name << " of " << describe(arguments[0].to_tensor()) << ", result " << i;
  }
}

}  // namespace tensord::cuda_tests
