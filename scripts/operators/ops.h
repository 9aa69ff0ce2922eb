#pragma once

#include "tensord/arguments.h"
//
@INCLUDES@

// Every operator on tensors as a typed function, under PyTorch's name: add(a, b), sum(x, {0, 1}, true), cat({a, b}, 1).
//
// Those on a `self` are members of Tensor too (methods.h): a.add(b). Calls with a tensor among the arguments need no
// namespace; others do: tensord::zeros({2, 3}).
//
// - Arguments and defaults are the schema's. What is for keywords only is named here too, in braces at the end:
//   add(a, b, {.alpha = 2}), zeros({2, 3}, {.dtype = DType::kFloat64}), div(a, b, {.rounding_mode = "floor"}).
// - Overloads are chosen by the compiler by the types. The name behind each is the overload's, as `tensord ops` prints it.
// - Several results are a std::tuple: auto [values, indices] = max(x, 0). A list of tensors is a std::vector.
// - In-place forms end in `_`, write what they are given and give it back. Forms with out= are called NAME_out and take
//   what they write first: add_out(out, a, b).
// - An optional tensor is std::optional<Tensor>; an undefined tensor in its place means the same as none.
// - Where a call without further arguments could mean two overloads, the later one has no defaults for them.
//
// Thread safety: as for the tensors. Every function throws Error, its message starting with the operator's name.
namespace tensord {

@OPERATORS@

}  // namespace tensord
