#pragma once

#include "tensord/methods.h"
//
#include "core/tensor/allocator.h"
#include "core/tensor/memory/storage_allocator.h"

// Memory that a program brings itself. A StorageAllocator that is set for a kind of device is where all tensors made
// from then on, and what plans and operators need meanwhile, have their memory from:
//
//   class Arena final : public tensord::StorageAllocator {
//     tensord::DataPtr allocate(size_t size_bytes, tensord::Device device) override {
//       void* data = arena_take(size_bytes);  // aligned to tensord::kAlignment
//       return {data, data, arena_give, device};
//     }
//     tensord::DeleterFnPtr raw_deleter() const override { return arena_give; }
//   };
//   static Arena arena;
//   tensord::set_allocator(tensord::kCPU, &arena);
//
// Memory of one tensor alone: wrap_storage (core/tensor/storage.h) with Tensor::from_storage.
