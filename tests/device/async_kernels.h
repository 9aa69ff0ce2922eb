#pragma once

namespace tensord::late {

// Gives the device of the tests every kernel that the processor has; before the first look-up. Operands on the host
// (numbers as tensors without dimensions) are copied at the call, as a launch takes them along.
void install_kernels();

}  // namespace tensord::late
