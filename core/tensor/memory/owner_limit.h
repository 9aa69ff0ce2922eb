#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/allocator.h"

namespace tensord {

// Limits the bytes that blocks of an owner may have at one time, by device; 0 removes the limit. A request above it is
// refused with Error{kResourceExhausted} naming the owner, the limit and the bytes in use. Thread-safe.
void set_owner_limit(OwnerId owner, uint64_t limit_bytes);
// 0 if there is none.
uint64_t owner_limit(OwnerId owner);
// Whether a request was refused since the limit was set. An error on its way up gets another message and type, so it
// cannot tell.
bool was_limit_reached(OwnerId owner);
void note_limit_reached(OwnerId owner);  // called by the code that refuses

// The bytes that the calling thread's owner may still allocate: below its limit, or half of the memory that this
// process can have.
uint64_t room_of_owner();
// For readers of files, before they allocate what a file asks for: throws Error{kResourceExhausted} with both figures
// if that exceeds room_of_owner(). `what` names the request in the message.
void check_room(uint64_t size_bytes, const std::string& what);

}  // namespace tensord
