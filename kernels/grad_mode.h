#pragma once

namespace tensord::kernels {

// What torch.is_grad_enabled() says on the calling thread; false until set, since
// serving computes no gradients.
bool is_grad_enabled();
void set_grad_enabled(bool enabled);

}  // namespace tensord::kernels
