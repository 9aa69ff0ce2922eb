#pragma once

#include <cstddef>

// Two modes for tests, chosen by the environment when the process starts.
//
// TENSORD_GUARD=1: every block of the CPU's allocator, and every root and scratch of a plan, lies by itself between
// pages without access, so that a read or write outside of it ends the process by signal 11. Blocks alternate: one
// ends at the page behind it, as near as kAlignment permits, the next begins at the page before it. What is left of
// its pages on the other side, and between its end and that alignment, holds canaries: bytes of kPoison, so that what
// is read there by mistake is NaN, and looked at when the block is freed, so that what is written there ends the
// process with a message. Freed blocks are unmapped at once. Memory of others (mapped files, requests) is not guarded.
//
// TENSORD_POISON=1: fresh memory of the allocator is filled with kPoison, plans' memory before every run.
namespace tensord {

inline constexpr int kPoison = 0xff;  // bytes that are NaN in every floating point type, -1 in integers

bool guards_memory();
bool poisons_memory();

// Maps size_bytes > 0 as TENSORD_GUARD says; returns null otherwise.
void* map_guarded(size_t size_bytes);
// Ends the process if a canary has changed.
void unmap_guarded(void* data, size_t size_bytes);

}  // namespace tensord
