// What CUDA has of the registry: each operator that works on elements has a kernel, or runs on the host (RunsOnHost).
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "core/ops/attributes/runs_on_host.h"
#include "core/ops/dispatch.h"
#include "core/ops/registry.h"

namespace tensord::cuda_kernels_test {
namespace {

bool works_on_elements(const ops::Op& op) {
  return op.kind == ops::OpKind::kStructured || op.kind == ops::OpKind::kAllocating;
}

TEST(CudaKernels, AreThereOrRunOnTheHost) {
  std::map<std::string, size_t> counts;
  for (const ops::Op* op : ops::all_ops()) {
    if (op->base) continue;
    if (!works_on_elements(*op)) {
      ++counts[op->kind == ops::OpKind::kView        ? "views"
               : op->kind == ops::OpKind::kComposite ? "compositions"
                                                     : "script"];
    } else if (op->kernel(kCUDA) == &ops::kOnHost) {
      ++counts["by a copy to the host"];
    } else if (op->kernel(kCUDA)) {
      ++counts["kernels"];
    } else if (!op->kernel(kCPU)) {
      ++counts["of other layouts"];
    } else {
      ADD_FAILURE() << op->schema.full_name() << " has no kernel for CUDA, and no RunsOnHost says why";
    }
  }
  for (const auto& [what, count] : counts) std::printf("%zu %s\n", count, what.c_str());
  EXPECT_GT(counts["kernels"], 550u);
  EXPECT_LE(counts["by a copy to the host"], 34u);
}

// Such a call waits for the device, so no plan has it.
TEST(CudaKernels, RunOnTheHostOnlyWithoutCodeOfTheirOwn) {
  for (const ops::Op* op : ops::all_ops()) {
    const auto* const on_host = op->attributes.get<ops::RunsOnHost>();
    if (!on_host) continue;
    const std::string name = op->schema.full_name();
    EXPECT_NE(on_host->reason, "") << name;
    EXPECT_EQ(op->kernel(kCUDA), &ops::kOnHost) << name << " has a kernel for CUDA";
    const auto kind = static_cast<size_t>(kCUDA);
    EXPECT_FALSE(op->has_fill(kCUDA) || op->prepare[kind] || op->pack[kind]) << name << " may be in a plan";
  }
}

}  // namespace
}  // namespace tensord::cuda_kernels_test
