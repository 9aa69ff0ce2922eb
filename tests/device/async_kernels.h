#pragma once

namespace tensord::late {

// Registers every CPU kernel for the test device. Call it before the first look-up. Operands on the host (numbers as
// 0-dimensional tensors) are copied at the call, like kernel launch arguments.
void install_kernels();

}  // namespace tensord::late
