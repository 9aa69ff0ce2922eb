#pragma once

#include <utility>
#include <vector>

#include "core/tensor/memory/caching_allocator.h"

namespace tensord {

// The allocators of the devices that were used so far, the host's first.
std::vector<std::pair<Device, CachingAllocator*>> used_allocators();

// Sums over all of them.
uint64_t bytes_of_owner(OwnerId owner);
// Each owner once. Its peak is the sum of its peaks on each device, which need not have been at the same time.
std::vector<OwnerBytes> bytes_of_owners();
void trim_allocators();

}  // namespace tensord
