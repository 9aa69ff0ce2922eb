#pragma once

namespace tensord::ops {

// An operator's attribute: results that its schema calls Tensor may be None, as PyTorch's undefined tensors are to a
// script: gradients that a mask leaves out, weights that nobody needs.
struct MayLackResults {};

}  // namespace tensord::ops
