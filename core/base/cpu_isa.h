#pragma once

#include <optional>

namespace tensord {

// Vector instruction sets, from old to new. Processors other than x86 have only kBaseline.
enum class CpuIsa { kBaseline, kSse4, kAvx2, kAvx512 };

// The newest instruction set that kernels may use. TENSORD_MAX_ISA sets it to `baseline`, `sse4`, `avx2` or `avx512`,
// so that one machine can reproduce the numbers of another. Empty means no limit. Throws Error for any other value.
std::optional<CpuIsa> max_cpu_isa();

// The newest instruction set that kernels use on this machine: the CPU's, or the limit.
CpuIsa cpu_isa();
const char* to_string(CpuIsa isa);  // "AVX-512"

}  // namespace tensord
