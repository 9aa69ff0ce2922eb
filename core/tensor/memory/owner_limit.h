#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/allocator.h"

namespace tensord {

// The most bytes that blocks of an owner may have at one time, by device; 0 is no limit. What would go above it is
// refused with Error{kResourceExhausted} naming the owner, the limit and what is in use. Thread-safe.
void set_owner_limit(OwnerId owner, uint64_t limit_bytes);
// 0 when there is none.
uint64_t owner_limit(OwnerId owner);
// Whether anything was refused since the limit was set; errors are given other texts and types on their way up, so that
// they cannot tell.
bool was_limit_reached(OwnerId owner);
void note_limit_reached(OwnerId owner);  // by what refuses

// What the calling thread's owner may still have: below its limit, or else half of the memory that this process can
// have.
uint64_t room_of_owner();
// For readers of files, before they make what a file asks for: throws Error{kResourceExhausted} with both figures where
// that is more than there is room for. `what` asks.
void check_room(uint64_t size_bytes, const std::string& what);

}  // namespace tensord
