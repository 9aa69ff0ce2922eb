#pragma once

#include <string_view>

namespace tensord::ops {

// An operator's attribute: devices without a kernel copy the arguments of a call to the host, run the CPU's kernel
// there and copy the results back (core/ops/runs_on_host.cpp). Such a call waits for the device, so plans do not
// contain it, and a stream that is being captured cannot run it.
struct RunsOnHost {
  std::string_view reason;  // "cuSOLVER is not called yet", for `tensord ops` and docs/operators.md; static text
};

}  // namespace tensord::ops
