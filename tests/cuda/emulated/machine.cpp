#include "tests/cuda/emulated/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace tensord::cuda::emulated {

Thread* current = nullptr;
Block block_;

Settings& settings() {
  static Settings all;
  return all;
}

using namespace boost::context::detail;

struct Fiber {
  static constexpr size_t kStack = 64 << 10;
  char* stack = nullptr;
  fcontext_t context = nullptr;
};

namespace {

constexpr size_t kMaxShared = 227 << 10, kMaxStaticShared = 48 << 10;

// Lanes of a warp that do something together.
struct Group {
  uint32_t mask = 0, arrived = 0;
  WarpOperation operation = kNone;
};

class Machine {
 public:
  static Machine& instance() {
    static auto* const machine = new Machine;
    return *machine;
  }

  std::string run(const Launch& launch) {
    fault_.clear();
    launch_ = &launch;
    const size_t count = size_t{launch.block.x} * launch.block.y * launch.block.z;
    while (threads_.size() < count) threads_.push_back(std::make_unique<Thread>());
    lanes_.resize((count + 31) / 32 * 32);
    block_.grid = launch.grid;
    block_.block = launch.block;
    block_.device = launch.device;
    random_.seed(settings().seed * 1000003 + launches_++);
    const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    for (uint64_t i = 0; i < blocks && fault_.empty(); ++i) {
      const uint64_t at = settings().seed % 2 == 1 ? blocks - 1 - i : i;
      block_.index = {static_cast<unsigned>(at % launch.grid.x),
                      static_cast<unsigned>(at / launch.grid.x % launch.grid.y),
                      static_cast<unsigned>(at / launch.grid.x / launch.grid.y)};
      run_block(count);
    }
    current = nullptr;
    return fault_;
  }

  void sync_threads(int line) {
    Thread& me = *current;
    if (arrived_ == 0) line_ = line;
    if (line != line_) fault("threads of a block wait at different barriers");
    ++arrived_;
    if (arrived_ == live_) {
      release_barrier();
      if (settings().seed == 0) return;
      ready_.push_back(&me);
      shuffle_ready(next_ready_);
    } else {
      me.waits = true;
      waiting_.push_back(&me);
    }
    wait_for_turn();
  }

  void warp_together(uint32_t mask, WarpOperation operation, Together together) {
    Thread& me = *current;
    const uint32_t bit = 1u << me.lane;
    if ((mask & bit) == 0) fault("a lane that is not in its own mask");
    Thread** const lanes = lanes_.data() + size_t{me.warp} * 32;
    Group& group = group_of(me.warp, mask);
    if (group.arrived == 0) {
      group.operation = operation;
      for (unsigned l = 0; l < 32; ++l) {
        if ((mask >> l & 1) && (!lanes[l] || lanes[l]->is_done)) fault("a mask with a lane that is not there");
      }
    }
    if (group.operation != operation) fault("lanes of one mask do different things");
    group.arrived |= bit;
    if (group.arrived != mask) {
      me.waits = true;
      return wait_for_turn();
    }
    if (together) together(lanes, mask);
    group.arrived = 0;
    const size_t first = ready_.size();
    for (unsigned l = 0; l < 32; ++l) {
      if ((mask >> l & 1) == 0 || lanes[l] == &me) continue;
      lanes[l]->waits = false;
      ready_.push_back(lanes[l]);
    }
    if (settings().seed == 0) return;
    ready_.push_back(&me);
    shuffle_ready(std::max(first, next_ready_));
    wait_for_turn();
  }

  void* shared_memory(const void* tag, size_t size) {
    for (const auto& [known, at] : shared_of_) {
      if (known == tag) return at;
    }
    shared_used_ = (shared_used_ + 15) / 16 * 16;
    const size_t limit = tag == this ? kMaxShared : kMaxStaticShared + launch_->shared_bytes;
    if (shared_used_ + size > std::min(limit, kMaxShared)) fault("more shared memory than there is");
    char* const at = shared_.get() + shared_used_;
    shared_used_ += size;
    std::memset(at, 0xff, size);  // NaN
    shared_of_.emplace_back(tag, at);
    return at;
  }

  [[noreturn]] void fail(const char* what) {
    const Thread* const t = current;
    char text[320];
    std::snprintf(text, sizeof text, "%s (thread %u,%u,%u of block %u,%u,%u)", what, t ? t->index.x : 0,
                  t ? t->index.y : 0, t ? t->index.z : 0, block_.index.x, block_.index.y, block_.index.z);
    if (!running_) {
      std::fprintf(stderr, "emulated CUDA: %s\n", text);
      std::abort();
    }
    fault_ = text;
    leave_to(nullptr, running_);
    std::abort();  // nobody comes back
  }

 private:
  Machine() : shared_(static_cast<char*>(std::aligned_alloc(128, kMaxShared + 4096)), &std::free) {}

  void run_block(size_t count) {
    shared_of_.clear();
    shared_used_ = 0;
    block_.dynamic_shared = nullptr;
    const dim3 block = launch_->block;
    std::fill(lanes_.begin(), lanes_.end(), nullptr);
    order_.clear();
    for (size_t i = 0; i < count; ++i) {
      Thread& t = *threads_[i];
      t.index = {static_cast<unsigned>(i % block.x), static_cast<unsigned>(i / block.x % block.y),
                 static_cast<unsigned>(i / block.x / block.y)};
      t.lane = i % 32, t.warp = static_cast<unsigned>(i / 32);
      t.is_done = t.waits = false;
      lanes_[i] = &t;
      order_.push_back(&t);
    }
    if (settings().seed != 0) std::shuffle(order_.begin(), order_.end(), random_);
    groups_.assign((count + 31) / 32, {});
    live_ = count, arrived_ = 0, fresh_ = 0, next_ready_ = 0;
    ready_.clear();
    waiting_.clear();
    if (launch_->shared_bytes > 0)
      block_.dynamic_shared = static_cast<unsigned char*>(shared_memory(this, launch_->shared_bytes));
    leave_to(take_fiber(), nullptr);
    running_ = nullptr;
    if (!fault_.empty()) {
      for (const auto& fiber : fibers_) reset(*fiber);
      pool_.clear();
      for (const auto& fiber : fibers_) pool_.push_back(fiber.get());
    }
  }

  // Fibers ---------------------------------------------------------------------------------------------------------

  static void reset(Fiber& fiber) { fiber.context = make_fcontext(fiber.stack + Fiber::kStack, Fiber::kStack, &enter); }

  Fiber* take_fiber() {
    if (pool_.empty()) {
      auto made = std::make_unique<Fiber>();
      made->stack = static_cast<char*>(
          mmap(nullptr, Fiber::kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
      mprotect(made->stack, 4096, PROT_NONE);
      reset(*made);
      pool_.push_back(made.get());
      fibers_.push_back(std::move(made));
    }
    Fiber* const fiber = pool_.back();
    pool_.pop_back();
    return fiber;
  }

  // From the fiber `from` to another; null: the caller of run().
  void leave_to(Fiber* to, Fiber* from) {
    running_ = to;
    note(jump_fcontext(to ? to->context : host_, from));
  }
  void note(transfer_t back) {
    if (back.data)
      static_cast<Fiber*>(back.data)->context = back.fctx;
    else
      host_ = back.fctx;
  }

  // A fiber runs threads from their beginning until one waits, then the next fiber does.
  static void enter(transfer_t back) {
    Machine& m = instance();
    m.note(back);
    Fiber* const self = m.running_;
    for (;;) {
      while (m.fresh_ < m.order_.size()) m.run_thread(*m.order_[m.fresh_++], self);
      Fiber* const next = m.next_fiber();
      m.pool_.push_back(self);
      m.leave_to(next, self);
    }
  }

  void run_thread(Thread& t, Fiber* self) {
    t.fiber = self;
    current = &t;
    launch_->body();
    t.is_done = true;
    --live_;
    if (live_ > 0 && arrived_ == live_) release_barrier();
  }

  // Whose turn it is; null: all have ended.
  Fiber* next_fiber() {
    if (next_ready_ >= ready_.size()) {
      if (live_ > 0) fault("no thread of the block can go on: a barrier that not all come to");
      return nullptr;
    }
    if (settings().seed % 3 == 1) {
      current = ready_.back();
      ready_.pop_back();
    } else {
      current = ready_[next_ready_++];
    }
    if (next_ready_ >= ready_.size()) ready_.clear(), next_ready_ = 0;
    return current->fiber;
  }

  void wait_for_turn() {
    Thread* const me = current;
    if (fresh_ < order_.size()) {
      leave_to(take_fiber(), me->fiber);
    } else {
      Fiber* const next = next_fiber();
      if (next != me->fiber) leave_to(next, me->fiber);
    }
    current = me;
  }

  void release_barrier() {
    arrived_ = 0;
    for (Thread* const t : waiting_) {
      t->waits = false;
      ready_.push_back(t);
    }
    waiting_.clear();
    if (settings().seed != 0) shuffle_ready(next_ready_);
  }
  void shuffle_ready(size_t from) {
    std::shuffle(ready_.begin() + static_cast<std::ptrdiff_t>(from), ready_.end(), random_);
  }

  Group& group_of(unsigned warp, uint32_t mask) {
    auto& all = groups_[warp];
    for (Group& group : all) {
      if (group.mask == mask) return group;
    }
    for (Group& group : all) {
      if (group.arrived == 0) {
        group.mask = mask;
        return group;
      }
    }
    all.push_back({mask, 0, kNone});
    return all.back();
  }

  const Launch* launch_ = nullptr;
  std::string fault_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> lanes_, order_, waiting_, ready_;
  size_t next_ready_ = 0, fresh_ = 0, live_ = 0, arrived_ = 0;
  int line_ = 0;
  std::vector<std::vector<Group>> groups_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> pool_;
  fcontext_t host_ = nullptr;
  Fiber* running_ = nullptr;
  std::mt19937_64 random_;
  uint64_t launches_ = 0;
  std::unique_ptr<char, void (*)(void*)> shared_;
  size_t shared_used_ = 0;
  std::vector<std::pair<const void*, char*>> shared_of_;
};

}  // namespace

std::string run_kernel(const Launch& launch) { return Machine::instance().run(launch); }
void fault(const char* what) { Machine::instance().fail(what); }
void sync_threads(int line) { Machine::instance().sync_threads(line); }
void warp_together(uint32_t mask, WarpOperation operation, Together together) {
  Machine::instance().warp_together(mask, operation, together);
}
void* shared_memory(const void* tag, size_t size) { return Machine::instance().shared_memory(tag, size); }

void exchange(Thread* const* lanes, uint32_t mask) {
  for (unsigned l = 0; l < 32; ++l) {
    if ((mask >> l & 1) == 0) continue;
    const auto from = static_cast<unsigned>(lanes[l]->in[1]);
    if (from > 31 || (mask >> from & 1) == 0) fault("a shuffle from a lane that does not take part");
    lanes[l]->out = lanes[from]->in[0];
  }
}
void ballot(Thread* const* lanes, uint32_t mask) {
  uint64_t votes = 0;
  for (unsigned l = 0; l < 32; ++l) {
    if (mask >> l & 1) votes |= lanes[l]->in[0] << l;
  }
  for (unsigned l = 0; l < 32; ++l) {
    if (mask >> l & 1) lanes[l]->out = votes;
  }
}

}  // namespace tensord::cuda::emulated
