#pragma once

#include <array>
#include <vector>

#include "core/ops/registry.h"

namespace tensord::ops {

// What one call of derive_kernels gives a device. Operators' kernels and dynamic entries come from the registry,
// forms of complex numbers from their own table.
struct DerivedKernels {
  DeviceKind device, like;
  MakeKernel make;
  MakeDynamic make_dynamic;

  void add_kernel(const Op& op, std::array<KernelFn, kDeviceKinds>& kernels) const {
    const KernelFn& kernel = kernels[static_cast<size_t>(like)];
    KernelFn& own = kernels[static_cast<size_t>(device)];
    if (kernel && !own) own = make(op, kernel);
  }
  void add_entry(const Op& op, std::array<DirectFn, kDeviceKinds>& entries) const {
    const DirectFn& entry = entries[static_cast<size_t>(like)];
    DirectFn& own = entries[static_cast<size_t>(device)];
    if (entry && !own) own = make_dynamic(op, entry);
  }
};

// Of all calls, in their order.
const std::vector<DerivedKernels>& derived_kernels();

}  // namespace tensord::ops
