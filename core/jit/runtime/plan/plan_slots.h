#pragma once

#include <vector>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// Where a plan's roots of kind kArena and its calls' scratch lie for one worker: at their offsets into the worker's
// arena, or, where guards_memory(), each in memory of its own, which the arena then does without.
class PlanSlots {
 public:
  PlanSlots() = default;
  // `arena`: of at least arena_bytes(plan), which stays the caller's.
  PlanSlots(const Plan& plan, const Storage& arena);
  PlanSlots(const Plan& plan, char* arena);

  static size_t arena_bytes(const Plan& plan);

  char* root(const Plan& plan, uint32_t root) const;
  void* scratch(const Plan& plan, size_t call) const;
  // The root's storage, and where in it the root begins. Only of slots that were made with a storage.
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
