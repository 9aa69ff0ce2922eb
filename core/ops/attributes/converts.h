#pragma once

namespace tensord::ops {

// An operator's attribute: its result is the first argument with another dtype, device or memory order.
struct Converts {};

}  // namespace tensord::ops
