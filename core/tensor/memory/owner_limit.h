#pragma once

#include <cstdint>

#include "core/tensor/allocator.h"

namespace tensord {

// The most bytes that blocks of an owner may have at one time, by device; 0 is no limit. What would go above it is
// refused with Error{kResourceExhausted} naming the owner, the limit and what is in use. Thread-safe.
void set_owner_limit(OwnerId owner, uint64_t limit_bytes);
// 0 when there is none.
uint64_t owner_limit(OwnerId owner);

}  // namespace tensord
