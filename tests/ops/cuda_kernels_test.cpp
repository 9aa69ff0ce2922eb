// What CUDA has of the registry: each operator that works on elements has a kernel, runs on the host (RunsOnHost), or
// stands in tests/cuda/not_there.txt with the reason.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "core/ops/attributes/runs_on_host.h"
#include "core/ops/dispatch.h"
#include "core/ops/registry.h"
#include "tests/support/places.h"

namespace tensord::cuda_kernels_test {
namespace {

// Name → reason.
std::map<std::string, std::string> not_there() {
  std::ifstream file(std::string(tests_folder()) + "/cuda/not_there.txt");
  std::map<std::string, std::string> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = line.find(' ');
    out[line.substr(0, blank)] = blank == std::string::npos ? "" : line.substr(blank + 1);
  }
  return out;
}

bool works_on_elements(const ops::Op& op) {
  return op.kind == ops::OpKind::kStructured || op.kind == ops::OpKind::kAllocating;
}

TEST(CudaKernels, AreThereOrNamedAsMissing) {
  const std::map<std::string, std::string> missing = not_there();
  std::map<std::string, size_t> counts;
  std::set<std::string> unnamed, there;
  for (const ops::Op* op : ops::all_ops()) {
    if (op->base) continue;
    const std::string name = op->schema.full_name();
    if (!works_on_elements(*op)) {
      ++counts[op->kind == ops::OpKind::kView        ? "views"
               : op->kind == ops::OpKind::kComposite ? "compositions"
                                                     : "script"];
    } else if (op->kernel(kCUDA) == &ops::kOnHost) {
      ++counts["by a copy to the host"];
      there.insert(name);
    } else if (op->kernel(kCUDA)) {
      ++counts["kernels"];
      there.insert(name);
    } else if (!op->kernel(kCPU)) {
      ++counts["of other layouts"];
    } else {
      ++counts["missing"];
      if (!missing.contains(name)) unnamed.insert(name);
    }
  }
  for (const auto& [what, count] : counts) std::printf("%zu %s\n", count, what.c_str());
  for (const std::string& name : unnamed)
    ADD_FAILURE() << name << " has no kernel for CUDA, and tests/cuda/not_there.txt does not say why";
  for (const auto& [name, reason] : missing) {
    EXPECT_NE(reason, "") << name << " has no reason";
    EXPECT_FALSE(there.contains(name)) << name << " has a kernel for CUDA now";
    EXPECT_NE(ops::find_op(name), nullptr) << name << " is not an operator";
  }
  EXPECT_GT(counts["kernels"], 400u);
  EXPECT_LE(counts["by a copy to the host"], 57u);
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
