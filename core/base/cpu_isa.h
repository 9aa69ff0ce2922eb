#pragma once

#include <optional>

namespace tensord {

// Sets of vector instructions, from old processors to new ones. Others than x86 have one only.
enum class CpuIsa { kBaseline, kSse4, kAvx2, kAvx512 };

// The newest set that kernels may use: TENSORD_MAX_ISA is `baseline`, `sse4`, `avx2` or `avx512`. Lets one
// machine show what another would do. Empty: whatever the processor has. Throws Error on another value.
std::optional<CpuIsa> max_cpu_isa();

}  // namespace tensord
