#pragma once

#include <string_view>

namespace tensord::ops {

// An operator's attribute: devices that have no kernel of it copy what a call takes to the host, run the processor's
// code there and copy the results back (core/ops/runs_on_host.cpp). Such a call waits for the device, so it is in no
// plan, and a stream that is captured cannot have it.
struct RunsOnHost {
  std::string_view reason;  // "cuSOLVER is not called yet", for `tensord ops` and docs/operators.md; static text
};

}  // namespace tensord::ops
