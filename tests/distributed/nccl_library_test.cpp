// How NCCL's library is found and opened, and the errors if it is missing.
#include <gmock/gmock.h>

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/distributed/nccl/nccl_backend.h"
#include "core/tensor/device_runtime.h"

namespace tensord::distributed::nccl_library_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::vector<std::string>& places) {
  try {
    open_nccl(places);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    return error.what();
  }
  return "";
}

TEST(NcclLibrary, ALibraryThatIsNotThereIsNamed) {
  EXPECT_THAT(error_of({"/nowhere/libnccl.so.2", "/nor/here.so"}),
              AllOf(HasSubstr("TENSORD_NCCL"), HasSubstr("/nowhere/libnccl.so.2"), HasSubstr("/nor/here.so")));
}

TEST(NcclLibrary, ALibraryWithoutTheFunctionsIsNamed) {
  EXPECT_THAT(error_of({"libm.so.6"}), HasSubstr("libm.so.6 has no ncclGetVersion; expected NCCL 2.14.0 or newer"));
}

TEST(NcclLibrary, AnOldVersionIsRefused) {
  EXPECT_THAT(error_of({TENSORD_OLD_NCCL}), HasSubstr("is version 2.8.4, expected 2.14.0 or newer"));
  EXPECT_EQ(nccl_version_text(21403), "2.14.3");
}

TEST(NcclLibrary, TheEnvironmentNamesIt) {
  const char* const before = std::getenv("TENSORD_NCCL");
  const std::string kept = before ? before : "";
  setenv("TENSORD_NCCL", "/chosen/libnccl.so.2", 1);
  EXPECT_EQ(nccl_places(), std::vector<std::string>{"/chosen/libnccl.so.2"});
  before ? setenv("TENSORD_NCCL", kept.c_str(), 1) : unsetenv("TENSORD_NCCL");
}

TEST(NcclLibrary, WithoutADeviceThereAreNoBackends) {
  try {
    device_runtime({kCUDA, 0});
    GTEST_SKIP() << "this machine has a CUDA device";
  } catch (const Error&) {
  }
  EXPECT_FALSE(has_nccl());
  try {
    nccl_backends();
    ADD_FAILURE() << "there is no device";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("nccl: device cuda:0 is not available"), HasSubstr("CUDA devices")));
  }
}

// The real library, if it is installed: pip install nvidia-nccl-cu12.
TEST(NcclLibrary, TheRealLibraryHasAllFunctions) {
  NcclApi api{};
  try {
    api = open_nccl(nccl_places());
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  int version = 0;
  ASSERT_EQ(api.get_version(&version), NcclResult::kSuccess);
  EXPECT_GE(version, kMinNcclVersion);
  EXPECT_STREQ(api.get_error_string(NcclResult::kSuccess), "no error");
  for (const NcclResult result : {NcclResult::kRemoteError, NcclResult::kInProgress, NcclResult::kInvalidUsage}) {
    EXPECT_GT(std::string_view(api.get_error_string(result)).size(), 3u);
  }
  EXPECT_EQ(api.group_start(), NcclResult::kSuccess);
  EXPECT_EQ(api.group_end(), NcclResult::kSuccess);
  // It returns an error for an invalid communicator, and does not crash.
  NcclResult state = NcclResult::kSuccess;
  EXPECT_EQ(api.comm_async_error(nullptr, &state), NcclResult::kInvalidArgument);
  EXPECT_EQ(api.all_reduce(nullptr, nullptr, 1, NcclType::kFloat32, NcclOp::kSum, nullptr, nullptr),
            NcclResult::kInvalidArgument);
}

}  // namespace
}  // namespace tensord::distributed::nccl_library_test
