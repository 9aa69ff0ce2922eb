#pragma once

namespace tensord::ops {

// An operator's attribute: the tensors in the list that is its argument 1 may be in host memory when the others are on
// a device, as PyTorch's indices may.
struct TakesHostIndices {};

}  // namespace tensord::ops
