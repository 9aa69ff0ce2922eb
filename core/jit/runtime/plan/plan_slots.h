#pragma once

#include <vector>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// Addresses of a plan's kArena roots and of its calls' scratch for one worker: at their offsets in the worker's arena,
// or, with guards_memory(), in separate blocks instead of the arena.
class PlanSlots {
 public:
  PlanSlots() = default;
  // `arena` has at least arena_bytes(plan) and stays owned by the caller.
  PlanSlots(const Plan& plan, const Storage& arena);
  PlanSlots(const Plan& plan, char* arena);

  static size_t arena_bytes(const Plan& plan);

  char* root(const Plan& plan, uint32_t root) const;
  void* scratch(const Plan& plan, size_t call) const;
  // The root's storage, and the root's offset in it. Only for slots created with a storage.
  const Storage& storage(uint32_t root) const;
  size_t storage_offset(const Plan& plan, uint32_t root) const;
  // Fills all of it with NaN.
  void poison(const Plan& plan) const;

 private:
  void take_own(const Plan& plan);

  char* arena_ = nullptr;
  Storage arena_storage_;
  std::vector<Storage> roots_, scratch_;  // only with guards
};

}  // namespace tensord::jit
