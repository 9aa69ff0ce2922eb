#pragma once

namespace tensord::ops {

// An operator's attribute: its result is the first argument in another dtype, device or order of memory, and nothing
// else.
struct Converts {};

}  // namespace tensord::ops
