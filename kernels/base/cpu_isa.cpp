#include "core/base/cpu_isa.h"

#include <hwy/targets.h>

#include <cstdint>
#include <dnnl.hpp>

#include "core/base/error.h"
#include "core/base/log.h"

namespace tensord::kernels {
namespace {

struct Limit {
  int64_t disabled;  // Highway's targets: on x86, lower bits are newer
  dnnl::cpu_isa onednn;
};

Limit limit_for(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kBaseline: return {(int64_t{1} << (HWY_HIGHEST_TARGET_BIT_X86 + 1)) - 1, dnnl::cpu_isa::sse41};
    case CpuIsa::kSse4: return {HWY_SSE4 - 1, dnnl::cpu_isa::sse41};
    case CpuIsa::kAvx2: return {HWY_AVX2 - 1, dnnl::cpu_isa::avx2};
    case CpuIsa::kAvx512: break;
  }
  return {HWY_AVX3 - 1, dnnl::cpu_isa::avx512_core};
}

// Runs before the first kernel chooses its code, so before main.
const bool is_limited = [] {
  try {
    const std::optional<CpuIsa> isa = max_cpu_isa();
    if (!isa) return false;
    const Limit limit = limit_for(*isa);
    hwy::DisableTargets(limit.disabled);
    dnnl::set_max_cpu_isa(limit.onednn);
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::kError, error.what());
    return false;
  }
}();

}  // namespace
}  // namespace tensord::kernels
