#pragma once

namespace tensord::ops {

// An operator's attribute: its kernel starts from its first argument and writes some of its elements, after it has
// checked the others for errors. If the output is that argument itself, as in the in-place variant, it touches only the
// elements that it writes.
struct WritesPart {};

}  // namespace tensord::ops
