#include "core/base/cpu_isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/base/error.h"

namespace tensord {

std::optional<CpuIsa> max_cpu_isa() {
  const char* value = std::getenv("TENSORD_MAX_ISA");
  const std::string name = value ? value : "";
  if (name.empty()) return std::nullopt;
  if (name == "baseline") return CpuIsa::kBaseline;
  if (name == "sse4") return CpuIsa::kSse4;
  if (name == "avx2") return CpuIsa::kAvx2;
  if (name == "avx512") return CpuIsa::kAvx512;
  fail(ErrorCode::kInvalidArgument, "TENSORD_MAX_ISA=", name, ": expected baseline, sse4, avx2 or avx512");
}

CpuIsa cpu_isa() {
  CpuIsa isa = CpuIsa::kBaseline;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) isa = CpuIsa::kSse4;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isa = CpuIsa::kAvx2;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) isa = CpuIsa::kAvx512;
#endif
  return std::min(isa, max_cpu_isa().value_or(isa));
}

const char* to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kBaseline: return "baseline";
    case CpuIsa::kSse4: return "SSE4";
    case CpuIsa::kAvx2: return "AVX2";
    case CpuIsa::kAvx512: return "AVX-512";
  }
  return "baseline";
}

}  // namespace tensord
