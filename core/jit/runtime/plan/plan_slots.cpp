#include "core/jit/runtime/plan/plan_slots.h"

#include <cstring>

#include "core/tensor/memory_checks.h"

namespace tensord::jit {

PlanSlots::PlanSlots(const Plan& plan, const Storage& arena)
    : arena_(arena ? static_cast<char*>(arena->data()) : nullptr), arena_storage_(arena) {
  if (guards_memory()) take_own(plan);
}

PlanSlots::PlanSlots(const Plan& plan, char* arena) : arena_(arena) {
  if (guards_memory()) take_own(plan);
}

void PlanSlots::take_own(const Plan& plan) {
  for (const PlanRoot& root : plan.roots) {
    const bool is_own = root.kind == PlanRoot::Kind::kArena;
    roots_.push_back(is_own ? allocate_storage(root.bytes, Device{}) : Storage());
  }
  for (const PlanCall& call : plan.calls)
    scratch_.push_back(call.scratch_bytes > 0 ? allocate_storage(call.scratch_bytes, Device{}) : Storage());
}

size_t PlanSlots::arena_bytes(const Plan& plan) { return guards_memory() ? 0 : plan.arena_bytes; }

char* PlanSlots::root(const Plan& plan, uint32_t root) const {
  if (!roots_.empty()) return static_cast<char*>(roots_[root]->data());
  return arena_ ? arena_ + plan.roots[root].offset : nullptr;
}

void* PlanSlots::scratch(const Plan& plan, size_t call) const {
  if (!scratch_.empty()) return scratch_[call] ? scratch_[call]->data() : nullptr;
  return arena_ ? arena_ + plan.calls[call].scratch_offset : nullptr;
}

const Storage& PlanSlots::storage(uint32_t root) const { return roots_.empty() ? arena_storage_ : roots_[root]; }

size_t PlanSlots::storage_offset(const Plan& plan, uint32_t root) const {
  return roots_.empty() ? plan.roots[root].offset : 0;
}

void PlanSlots::poison(const Plan& plan) const {
  if (arena_ && !guards_memory()) std::memset(arena_, kPoison, plan.arena_bytes);
  for (const auto* storages : {&roots_, &scratch_}) {
    for (const Storage& storage : *storages) {
      if (storage) std::memset(storage->data(), kPoison, storage->size_bytes());
    }
  }
}

}  // namespace tensord::jit
