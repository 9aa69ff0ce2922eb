#include "tests/cuda/emulated/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "tests/cuda/emulated/sanitizer.h"

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
  sanitizer::Stack bounds() const { return {stack, kStack}; }
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
    for (auto& threads : threads_) {
      while (threads.size() < count) threads.push_back(std::make_unique<Thread>());
    }
    lanes_.resize((count + 31) / 32 * 32);
    block_.grid = launch.grid;
    block_.block = launch.block;
    block_.device = launch.device;
    random_.seed(settings().seed * 1000003 + launches_++);
    const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    host_thread_ = sanitizer::this_thread();
    for (uint64_t i = 0; i < blocks && fault_.empty(); ++i) {
      const uint64_t at = settings().seed % 2 == 1 ? blocks - 1 - i : i;
      block_.index = {static_cast<unsigned>(at % launch.grid.x),
                      static_cast<unsigned>(at / launch.grid.x % launch.grid.y),
                      static_cast<unsigned>(at / launch.grid.x / launch.grid.y)};
      run_block(count, i % 2);
    }
    sanitizer::acquire(&end_);
    current = nullptr;
    return fault_;
  }

  void sync_threads(int line) {
    Thread& me = *current;
    if (arrived_ == 0) line_ = line;
    if (line != line_) fault("threads of a block wait at different barriers");
    ++arrived_;
    void* const barrier = &barriers_[barrier_count_ % 2];
    sanitizer::release(barrier);
    wait_at_barrier(me);
    sanitizer::acquire(barrier);
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
    // Only __syncwarp orders memory.
    void* const barrier = operation == kSyncWarp ? &warp_barriers_[me.warp] : nullptr;
    if (barrier) sanitizer::release(barrier);
    wait_in_group(me, group, lanes, together);
    if (barrier) sanitizer::acquire(barrier);
  }

  void* shared_memory(const void* tag, size_t size) {
    for (const auto& [known, at] : shared_of_) {
      if (known == tag) return at;
    }
    shared_used_ = (shared_used_ + 15) / 16 * 16;
    const size_t limit = tag == this ? kMaxShared : kMaxStaticShared + launch_->shared_bytes;
    if (shared_used_ + size > std::min(limit, kMaxShared)) fault("more shared memory than there is");
    char* const at = shared_ + shared_used_ + gaps_;
    shared_used_ += size;
    gaps_ += kGap;
    sanitizer::open(at, size);
    const sanitizer::Unseen unseen;
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
    sanitizer::become(host_thread_);
    leave_to(nullptr, running_);
    std::abort();  // nobody comes back
  }

 private:
  Machine() = default;

  // Behind each array in shared memory, where bounds are checked.
  static constexpr size_t kGap = sanitizer::kChecksBounds ? 64 : 0;
  static constexpr size_t kSharedSpace = kMaxShared + 32 * kGap;

  // Fresh memory for each block that had some, where races are looked for: other threads had it, and nothing orders
  // them and these.
  void clear_shared() {
    if (!shared_ || (sanitizer::kFindsRaces && shared_used_ > 0)) {
      const size_t size = shared_ ? (shared_used_ + 4095) / 4096 * 4096 : kSharedSpace;
      shared_ = static_cast<char*>(
          mmap(shared_, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (shared_ ? MAP_FIXED : 0), -1, 0));
    }
    sanitizer::close(shared_, kSharedSpace);
    shared_of_.clear();
    shared_used_ = gaps_ = 0;
  }

  // `half`: of two neighboring blocks, threads of one number are different threads.
  void run_block(size_t count, size_t half) {
    clear_shared();
    sanitizer::release(&begin_);
    const auto& threads = threads_[half];
    block_.dynamic_shared = nullptr;
    const dim3 block = launch_->block;
    std::fill(lanes_.begin(), lanes_.end(), nullptr);
    order_.clear();
    for (size_t i = 0; i < count; ++i) {
      Thread& t = *threads[i];
      t.index = {static_cast<unsigned>(i % block.x), static_cast<unsigned>(i / block.x % block.y),
                 static_cast<unsigned>(i / block.x / block.y)};
      t.lane = i % 32, t.warp = static_cast<unsigned>(i / 32);
      t.is_done = t.waits = false;
      lanes_[i] = &t;
      order_.push_back(&t);
    }
    if (settings().seed != 0) std::shuffle(order_.begin(), order_.end(), random_);
    groups_.assign((count + 31) / 32, {});
    warp_barriers_.resize((count + 31) / 32);
    live_ = count, arrived_ = 0, fresh_ = 0, next_ready_ = 0;
    ready_.clear();
    waiting_.clear();
    waiting_.reserve(count);
    if (launch_->shared_bytes > 0)
      block_.dynamic_shared = static_cast<unsigned char*>(shared_memory(this, launch_->shared_bytes));
    leave_to(take_fiber(), nullptr);
    running_ = nullptr;
    if (!fault_.empty()) {
      for (const auto& fiber : fibers_) reset(*fiber);
      pool_.clear();
      for (const auto& fiber : fibers_) {
        if (!sanitizer::kFindsRaces) pool_.push_back(fiber.get());
      }
    }
  }

  // Fibers ---------------------------------------------------------------------------------------------------------

  static void reset(Fiber& fiber) {
    sanitizer::open(fiber.stack + 4096, Fiber::kStack - 4096);
    fiber.context = make_fcontext(fiber.stack + Fiber::kStack, Fiber::kStack, &enter);
  }

  Fiber* make_fiber() {
    auto made = std::make_unique<Fiber>();
    made->stack = static_cast<char*>(
        mmap(nullptr, Fiber::kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    mprotect(made->stack, 4096, PROT_NONE);
    reset(*made);
    return fibers_.emplace_back(std::move(made)).get();
  }
  // For the next thread that begins. Where races are looked for, each thread has a stack of its own.
  Fiber* take_fiber() {
    if (sanitizer::kFindsRaces) {
      Thread& next = *order_[fresh_];
      if (!next.own) next.own = make_fiber();
      return next.own;
    }
    if (pool_.empty()) pool_.push_back(make_fiber());
    Fiber* const fiber = pool_.back();
    pool_.pop_back();
    return fiber;
  }

  // From the fiber `from` to another; null: the caller of run().
  void leave_to(Fiber* to, Fiber* from) {
    running_ = to;
    void* kept = nullptr;
    sanitizer::begin_switch(&kept, to ? to->bounds() : host_stack_);
    const transfer_t back = jump_fcontext(to ? to->context : host_, from);
    sanitizer::end_switch(kept, back.data ? nullptr : &host_stack_);
    note(back);
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
    sanitizer::end_switch(nullptr, back.data ? nullptr : &m.host_stack_);
    m.note(back);
    Fiber* const self = m.running_;
    for (;;) {
      do {
        m.run_thread(*m.order_[m.fresh_++], self);
      } while (!sanitizer::kFindsRaces && m.fresh_ < m.order_.size());
      Fiber* const next = m.fresh_ < m.order_.size() ? m.take_fiber() : m.next_fiber();
      if (!sanitizer::kFindsRaces) m.pool_.push_back(self);
      m.leave_to(next, self);
    }
  }

  void run_thread(Thread& t, Fiber* self) {
    t.fiber = self;
    current = &t;
    if (!t.sanitized) t.sanitized = sanitizer::make_thread();
    sanitizer::become(t.sanitized);
    sanitizer::acquire(&begin_);
    launch_->body();
    sanitizer::release(&end_);
    sanitizer::become(host_thread_);
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
    sanitizer::become(current->sanitized);
    return current->fiber;
  }

  // The list is the machine's, whatever thread it grows on.
  void make_ready(Thread* thread) {
    const sanitizer::Unseen unseen;
    ready_.push_back(thread);
  }

  void wait_at_barrier(Thread& me) {
    if (arrived_ == live_) {
      release_barrier();
      if (settings().seed == 0) return;
      make_ready(&me);
      shuffle_ready(next_ready_);
    } else {
      me.waits = true;
      waiting_.push_back(&me);
    }
    wait_for_turn();
  }

  void wait_in_group(Thread& me, Group& group, Thread* const* lanes, Together together) {
    const uint32_t mask = group.mask;
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
      make_ready(lanes[l]);
    }
    if (settings().seed == 0) return;
    make_ready(&me);
    shuffle_ready(std::max(first, next_ready_));
    wait_for_turn();
  }

  void wait_for_turn() {
    Thread* const me = current;
    if (fresh_ < order_.size()) {
      sanitizer::become(host_thread_);
      leave_to(take_fiber(), me->fiber);
    } else {
      Fiber* const next = next_fiber();
      if (next != me->fiber) leave_to(next, me->fiber);
    }
    current = me;
  }

  void release_barrier() {
    arrived_ = 0;
    ++barrier_count_;
    for (Thread* const t : waiting_) {
      t->waits = false;
      make_ready(t);
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
    const sanitizer::Unseen unseen;
    all.push_back({mask, 0, kNone});
    return all.back();
  }

  const Launch* launch_ = nullptr;
  std::string fault_;
  std::vector<std::unique_ptr<Thread>> threads_[2];
  std::vector<Thread*> lanes_, order_, waiting_, ready_;
  size_t next_ready_ = 0, fresh_ = 0, live_ = 0, arrived_ = 0;
  int line_ = 0;
  std::vector<std::vector<Group>> groups_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> pool_;
  fcontext_t host_ = nullptr;
  Fiber* running_ = nullptr;
  sanitizer::Stack host_stack_;
  // For ThreadSanitizer: who runs kernels, and places that stand for what orders threads.
  void* host_thread_ = nullptr;
  char begin_ = 0, end_ = 0, barriers_[2] = {};
  size_t barrier_count_ = 0;
  std::vector<char> warp_barriers_;
  std::mt19937_64 random_;
  uint64_t launches_ = 0;
  char* shared_ = nullptr;
  size_t shared_used_ = 0, gaps_ = 0;
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
