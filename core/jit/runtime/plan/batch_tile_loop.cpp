#include "core/jit/runtime/plan/batch_tile_loop.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/runtime/plan/plan_slots.h"

namespace tensord::jit {

namespace {

// One team's share of a part: its samples, and its memory.
class Team {
 public:
  Team(const SampleLoop& loop, const SampleLoop::Part& part, const ops::PreparedRun& memory, int team)
      : loop_(loop), part_(part), memory_(memory) {
    char* const base = static_cast<char*>(memory.scratch) + static_cast<size_t>(team) * part.team_bytes;
    pointers_ = reinterpret_cast<void**>(base);
    times_ = reinterpret_cast<int64_t*>(base + part.pointer_count * sizeof(void*));
    slots_ = PlanSlots(*part.body, base + part.team_bytes - part.body->arena_bytes);
  }

  int64_t* times() const { return times_; }

  // Runs the calls on the tile that starts at `sample`. Returns false if cancelled.
  template <class IsStopped>
  void run(int64_t sample, bool poison, bool is_timed, const PlanCall** failed, IsStopped&& is_stopped) {
    if (poison) slots_.poison(*part_.body);
    place(sample);
    void* const* at = pointers_;
    const std::vector<PlanCall>& calls = part_.body->calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      const PlanCall& call = calls[i];
      *failed = &call;
      if (is_stopped()) return;
      const int64_t start_ns = is_timed ? Clock::system().now_ns() : 0;
      call.prepared->run(ops::KernelContext{part_.body->device},
                         {at, at + call.inputs.size(), slots_.scratch(*part_.body, i)});
      if (is_timed) times_[i] += Clock::system().now_ns() - start_ns;
      at += call.inputs.size() + call.outputs.size();
    }
  }

 private:
  // Computes the addresses of all operands for this tile.
  void place(int64_t sample) {
    void** at = pointers_;
    for (const PlanCall& call : part_.body->calls) {
      for (const auto* tensors : {&call.inputs, &call.outputs}) {
        for (const uint32_t id : *tensors) *at++ = address(part_.body->tensors[id], sample);
      }
    }
  }

  void* address(const PlanTensor& tensor, int64_t sample) const {
    const PlanRoot& root = part_.body->roots[tensor.root];
    char* base = nullptr;
    switch (root.kind) {
      case PlanRoot::Kind::kArena: base = slots_.root(*part_.body, tensor.root); break;
      case PlanRoot::Kind::kInput:
        base = static_cast<char*>(const_cast<void*>(memory_.inputs[root.index])) +
               sample * loop_.input_strides[root.index];
        break;
      case PlanRoot::Kind::kOutput:
        base = static_cast<char*>(memory_.outputs[root.index]) + sample * loop_.output_strides[root.index];
        break;
    }
    return base + tensor.offset_bytes;
  }

  const SampleLoop& loop_;
  const SampleLoop::Part& part_;
  const ops::PreparedRun& memory_;
  void** pointers_;
  int64_t* times_;
  PlanSlots slots_;
};

// Adds each call once, with the time of all its tiles, as if the calls had run one after another.
void add_to(Profile& profile, const SampleLoop::Part& part, const std::vector<Team>& teams, int64_t start_ns) {
  for (size_t i = 0; i < part.body->calls.size(); ++i) {
    const PlanCall& call = part.body->calls[i];
    int64_t time_ns = 0;
    for (const Team& team : teams) time_ns += team.times()[i];
    time_ns /= static_cast<int64_t>(teams.size());
    profile.add(call.name, call.detail, start_ns, time_ns, part.costs[i].flops, part.costs[i].bytes);
    start_ns += time_ns;
  }
}

void run_part(const SampleLoop& loop, const SampleLoop::Part& part, const ops::PreparedRun& memory,
              const SampleLoop::Options& options, const PlanCall** failed) {
  const int64_t start_ns = options.profile ? Clock::system().now_ns() : 0;
  const int64_t turns = (part.end - part.first) / part.tile;
  std::atomic<bool> is_stopped{false}, is_cancelled{false};
  std::atomic<const PlanCall*> failed_call{nullptr};
  const auto run_team = [&](int number) {
    Team team(loop, part, memory, number);
    const bool is_timed = options.profile != nullptr;
    if (is_timed) std::fill_n(team.times(), part.body->calls.size(), int64_t{0});
    const auto stops = [&] {
      if (number == 0 && options.is_cancelled && (*options.is_cancelled)()) {
        is_cancelled.store(true, std::memory_order_relaxed);
        is_stopped.store(true, std::memory_order_relaxed);
      }
      return is_stopped.load(std::memory_order_relaxed);
    };
    const PlanCall* call = nullptr;
    try {
      for (int64_t turn = turns * number / part.teams; turn < turns * (number + 1) / part.teams && !is_stopped; ++turn)
        team.run(part.first + turn * part.tile, options.poison, is_timed, &call, stops);
    } catch (...) {
      is_stopped = true;
      failed_call = call;
      throw;
    }
  };
  try {
    parallel_run(part.teams, run_team);
  } catch (...) {
    *failed = failed_call;
    throw;
  }
  if (is_cancelled) fail(ErrorCode::kCancelled, "cancelled");
  if (!options.profile) return;
  std::vector<Team> teams;
  for (int number = 0; number < part.teams; ++number) teams.emplace_back(loop, part, memory, number);
  add_to(*options.profile, part, teams, start_ns);
}

}  // namespace

void SampleLoop::run(const ops::PreparedRun& memory, const Options& options, const PlanCall** failed) const {
  for (const Part& part : parts) run_part(*this, part, memory, options, failed);
}

size_t SampleLoop::call_count() const { return parts.empty() ? 0 : parts.front().body->calls.size(); }

std::string to_string(const SampleLoop& loop, const std::string& indent) {
  std::ostringstream out;
  for (const SampleLoop::Part& part : loop.parts) {
    out << indent << "for each of samples " << part.first << " to " << part.end - 1 << ", " << part.tile
        << " at a time, " << part.teams << " side by side, arena " << part.body->arena_bytes << " bytes each\n";
    out << describe_calls(*part.body, indent + "  ");
  }
  return out.str();
}

}  // namespace tensord::jit
