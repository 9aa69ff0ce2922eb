#pragma once

namespace tensord::ops {

// An operator's attribute: its kernel starts from its first argument and writes elements of it, after it has looked at
// all that may be wrong with the others. Where the output is that argument itself, as in the in-place form, it touches
// what it writes only.
struct WritesPart {};

}  // namespace tensord::ops
