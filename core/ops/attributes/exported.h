#pragma once

// What the writers of other formats (core/jit/exporters) ask of operators.
namespace tensord::ops {

// An operator's attribute: recent versions of PyTorch do not have this overload, so an exported program must not call
// it.
struct NotInPyTorch {};

// An operator's attribute: returns the element of a tensor as a number.
struct ReadsElement {};

// An operator's attribute: compares numbers, or looks for a number in a list.
struct ComparesNumbers {};

}  // namespace tensord::ops
