// <tensord/cuda.h> on the devices of TENSORD_CUDA; without one, what it says.
#include <tensord/tensord.h>
//
#include <gmock/gmock.h>

#include "tests/api/items.h"

namespace tensord::cuda_api_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Device kGpu{kCUDA, 0};

template <class F>
std::string message_of(F function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CudaApi, SaysWhyThereIsNoDevice) {
  if (cuda::is_available()) GTEST_SKIP() << "there is one";
  EXPECT_EQ(cuda::device_count(), 0);
  EXPECT_THAT(cuda::why_no_devices(), HasSubstr("no GPU: "));
  const Tensor x = tensor({1.f});
  EXPECT_THAT(message_of([&] { x.to(kGpu); }), HasSubstr(cuda::why_no_devices()));
  EXPECT_THAT(message_of([] { cuda::synchronize(); }), HasSubstr("cuda:0 is not available"));
  cuda::empty_cache();
}

TEST(CudaApi, ComputesInStreams) {
  if (!cuda::is_available()) GTEST_SKIP() << cuda::why_no_devices();
  const Tensor x = tensor({1.f, 2.f, 3.f}).to(kGpu);
  const std::unique_ptr<DeviceStream> side = cuda::make_stream(0, -1);
  const std::unique_ptr<DeviceEvent> copied = cuda::make_event(), computed = cuda::make_event();
  copied->record(cuda::current_stream());
  copied->hold(*side);
  Tensor y;
  {
    const cuda::StreamGuard guard(*side);
    EXPECT_EQ(&cuda::current_stream(), side.get());
    y = x * 2 + 1;
    computed->record(cuda::current_stream());
  }
  EXPECT_NE(&cuda::current_stream(), side.get());
  computed->synchronize();
  EXPECT_TRUE(computed->is_done());
  EXPECT_THAT(items_of(y.to(Device{})), ElementsAre(3, 5, 7));
  const uint64_t before = cuda::memory_stats().live_bytes;
  const Tensor z = zeros({1000}, {.device = kGpu});
  EXPECT_GE(cuda::memory_stats().live_bytes, before + 4000);
  cuda::synchronize();
  cuda::empty_cache();
  EXPECT_THAT(message_of([] { cuda::memory_stats(100); }), HasSubstr("cuda:100 is not available"));
  EXPECT_THAT(message_of([] { cuda::synchronize(200); }), HasSubstr("there is no device cuda:200"));
}

}  // namespace
}  // namespace tensord::cuda_api_test
