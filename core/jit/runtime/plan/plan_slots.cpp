#include "core/jit/runtime/plan/plan_slots.h"

#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/memory_checks.h"

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
    roots_.push_back(is_own ? allocate_storage(root.bytes, plan.device) : Storage());
  }
  for (const PlanCall& call : plan.calls)
    scratch_.push_back(call.scratch_bytes > 0 ? allocate_storage(call.scratch_bytes, plan.device) : Storage());
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
  const auto fill = [&](void* data, size_t bytes) {
    device_runtime(plan.device).fill(data, static_cast<uint8_t>(kPoison), bytes, current_stream(plan.device));
  };
  if (arena_ && !guards_memory()) fill(arena_, plan.arena_bytes);
  for (const auto* storages : {&roots_, &scratch_}) {
    for (const Storage& storage : *storages) {
      if (storage) fill(storage->data(), storage->size_bytes());
    }
  }
}

}  // namespace tensord::jit
