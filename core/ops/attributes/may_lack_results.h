#pragma once

namespace tensord::ops {

// An operator's attribute: results that its schema declares as Tensor may be None, where PyTorch returns undefined
// tensors: gradients that a mask excludes, weights that are not needed.
struct MayLackResults {};

}  // namespace tensord::ops
