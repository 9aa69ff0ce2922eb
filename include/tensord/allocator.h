#pragma once

#include "tensord/methods.h"
//
#include "core/tensor/allocator.h"
#include "core/tensor/memory/storage_allocator.h"

// Replaces the memory allocator of a kind of device. After set_allocator, all new tensors on the device, and the
// temporary memory of plans and operators, come from the program's StorageAllocator:
//
//     class Arena final : public tensord::StorageAllocator {
//         tensord::DataPtr allocate(size_t size_bytes, tensord::Device device) override {
//             void* data = arena_take(size_bytes);  // aligned to tensord::kAlignment
//             return {data, data, arena_give, device};
//         }
//         tensord::DeleterFnPtr raw_deleter() const override { return arena_give; }
//     };
//     static Arena arena;
//     tensord::set_allocator(tensord::kCPU, &arena);
//
// To bring the memory of a single tensor, use wrap_storage (core/tensor/storage.h) with Tensor::from_storage.
