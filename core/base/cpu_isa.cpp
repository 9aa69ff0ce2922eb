#include "core/base/cpu_isa.h"

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

}  // namespace tensord
