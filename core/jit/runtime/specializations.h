#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/jit/runtime/frame.h"
#include "core/jit/runtime/program.h"
#include "core/jit/runtime/signature.h"
#include "core/tensor/memory/memory_checks.h"

namespace tensord::jit {

struct PlanOptions {
  bool is_enabled = true;                 // false: every run is interpreted
  size_t cache_size = 64;                 // signatures kept a method; the least recently used goes
  bool poison = poisons_memory();         // runs plans on memory filled with NaN; for tests
  std::function<void(Plan&)> alter = {};  // breaks plans before they are verified; for tests
};

// Counted since the model was loaded. `build_ns` is the time spent building. `refused` are failures, too: plans that
// were not proven.
struct PlanStats {
  uint64_t hits = 0, misses = 0, evictions = 0, failures = 0, refused = 0;  // a hit: the program was there at once
  int64_t build_ns = 0;
  size_t programs = 0;                            // kept now
  size_t arena_bytes = 0;                         // of the largest plan kept
  std::map<std::string, uint64_t> failed_passes;  // of the whole module, at load too
};

// The programs of one method by input signature: a bounded cache. A signature that cannot be
// planned keeps the method's general program. Thread-safe: what a worker ran lately it finds
// in its own Frame without a lock; several workers that miss the same signature build it once.
// A run that plans in the background has the general program until a thread of this object has built the one for its
// signature; only the very first program is always waited for.
class Specializations {
 public:
  using ProgramPtr = std::shared_ptr<const Program>;
  // Makes the program for these arguments; null when the general one does as well. Throws Error.
  using Build = std::function<ProgramPtr(std::span<const ops::Value> arguments)>;

  Specializations(const Program& general, size_t capacity, Build build)
      : general_(general), capacity_(std::max<size_t>(capacity, 1)), build_(std::move(build)) {}
  ~Specializations();

  // Lives until `frame` has run more other signatures than the cache holds.
  const Program& find(Frame& frame, std::span<const ops::Value> arguments, bool in_background);
  PlanStats stats() const;

 private:
  struct Entry {
    ProgramPtr program;  // null while it is being built, and for the general one
    bool is_ready = false;
    std::list<const Signature*>::iterator order;
  };
  struct Hash {
    size_t operator()(const Signature& signature) const { return signature.hash(); }
  };
  struct Job {
    Signature signature;
    std::vector<ops::Value> arguments;  // shapes, not data
    std::shared_ptr<Entry> entry;
  };
  // Empty when it is being built and `may_wait` is false.
  std::optional<ProgramPtr> get(const Signature& signature, std::span<const ops::Value> arguments, bool may_wait);
  bool enqueue(const Signature& signature, std::span<const ops::Value> arguments, const std::shared_ptr<Entry>& entry)
      TENSORD_REQUIRES(mutex_);
  void build_jobs();
  struct Built {
    ProgramPtr program;
    bool has_failed = false, is_refused = false;
    int64_t build_ns = 0;
  };
  Built build(std::span<const ops::Value> arguments) const TENSORD_EXCLUDES(mutex_);
  void finish(Entry& entry, Built built) TENSORD_REQUIRES(mutex_);
  void evict() TENSORD_REQUIRES(mutex_);
  Thread stop();

  static uint64_t next_id();

  const uint64_t id_ = next_id();  // another one may come to lie at the same address
  const Program& general_;
  const size_t capacity_;
  const Build build_;
  mutable Mutex mutex_;
  CondVar built_, queued_;
  std::unordered_map<Signature, std::shared_ptr<Entry>, Hash> entries_ TENSORD_GUARDED_BY(mutex_);
  std::list<const Signature*> order_ TENSORD_GUARDED_BY(mutex_);  // most recent first
  std::deque<Job> jobs_ TENSORD_GUARDED_BY(mutex_);
  Thread builder_ TENSORD_GUARDED_BY(mutex_);  // started with the first job
  bool is_stopping_ TENSORD_GUARDED_BY(mutex_) = false;
  PlanStats stats_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<uint64_t> hits_{0};
};

// A program that a worker ran lately, and for what. `program` null: the general one.
struct RecentProgram {
  uint64_t owner = 0;  // its Specializations
  Signature signature;
  Specializations::ProgramPtr program;
};

}  // namespace tensord::jit
