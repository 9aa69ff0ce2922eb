// Runs of a plan that end early: their errors, and that the next run is unaffected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/tensor/allocator.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::jit::plan_errors_test {
namespace {

using ops::Value;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kLookUp =
    "def forward(table: Tensor, i: Tensor) -> Tensor:\n"
    "  rows = torch.embedding(table, i)\n"
    "  return torch.exp(rows) * 2.0\n";

Tensor table(int64_t rows = 4) {
  const Tensor out = Tensor::empty(Dims{rows, 2}, DType::kFloat32);
  std::fill_n(out.data<float>(), out.numel(), 0.f);
  return out;
}

Tensor index(int64_t value) {
  const Tensor out = Tensor::empty(Dims{1}, DType::kInt64);
  out.data<int64_t>()[0] = value;
  return out;
}

class PlanErrors : public ::testing::Test {
 protected:
  PlanErrors() : module_(Module::compile(kLookUp)), forward_(module_->method("forward")) {}

  float run(const Tensor& rows, int64_t i, const RunOptions& options = {}) {
    const std::vector<Value> arguments{rows, index(i)};
    const Value result = forward_.run(frame_, arguments, options);
    EXPECT_EQ(forward_.plan_stats().failures, 0u);
    return result.to_tensor().data<float>()[1];
  }

  struct Failure {
    ErrorCode code{};
    std::string message;
  };
  Failure failure(const Tensor& rows, int64_t i, const RunOptions& options = {}) {
    try {
      run(rows, i, options);
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {{}, "no error"};
  }

  const std::shared_ptr<Module> module_;
  const Method& forward_;
  Frame frame_;
};

TEST_F(PlanErrors, NameTheCallOnceWithItsPlace) {
  const Tensor rows = table();
  EXPECT_EQ(run(rows, 3), 2.f);
  const Failure found = failure(rows, 4);
  EXPECT_EQ(found.code, ErrorCode::kOutOfRange);
  EXPECT_THAT(found.message, StartsWith("aten::embedding: "));
  EXPECT_EQ(found.message.find("aten::embedding", 1), std::string::npos) << found.message;
  EXPECT_THAT(found.message, HasSubstr("(source:2)"));
  EXPECT_EQ(run(rows, 3), 2.f);
}

// Wherever a run is cancelled, between instructions or between the calls of its plan, the error names no call.
TEST_F(PlanErrors, ACancelledRunBlamesNoCall) {
  const Tensor rows = table();
  run(rows, 0);
  int in_plan = 0;
  for (int after = 0;; ++after) {
    ASSERT_LT(after, 100);
    int asked = 0;
    const std::function<bool()> is_cancelled = [&] { return ++asked > after; };
    const Failure found = failure(rows, 0, {.is_cancelled = &is_cancelled});
    if (found.message == "no error") break;
    EXPECT_EQ(found.code, ErrorCode::kCancelled);
    EXPECT_EQ(found.message.find("aten::"), std::string::npos) << found.message;
    in_plan += found.message == "cancelled";
    EXPECT_EQ(run(rows, 0), 2.f);
  }
  EXPECT_GE(in_plan, 2);
}

// An error before any call names no call either.
TEST_F(PlanErrors, WithoutMemoryForTheResult) {
  const OwnerId owner = memory_owner("plan errors");
  const Tensor rows = table(1000);
  const Value kept = [&] {
    const std::vector<Value> arguments{rows, index(0)};
    return forward_.run(frame_, arguments);  // the next run needs memory of its own
  }();
  const MemoryOwnerScope scope(owner);
  set_owner_limit(owner, 1);
  const Failure found = failure(rows, 0);
  set_owner_limit(owner, 0);
  EXPECT_EQ(found.code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(found.message, HasSubstr("memory limit of 'plan errors' reached"));
  EXPECT_EQ(found.message.find("aten::"), std::string::npos) << found.message;
  EXPECT_EQ(run(rows, 0), 2.f);
}

}  // namespace
}  // namespace tensord::jit::plan_errors_test
