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
#include "core/base/test_hooks.h"
#include "core/base/thread.h"
#include "core/jit/runtime/frame.h"
#include "core/jit/runtime/program.h"
#include "core/jit/runtime/signature.h"
#include "core/tensor/memory/memory_checks.h"

namespace tensord::jit {

struct PlanOptions {
  bool is_enabled = true;            // false: every run is interpreted
  size_t cache_size = 64;            // signatures cached per method; the least recently used is evicted
  bool poison = poisons_memory();    // run plans on memory filled with NaN; for tests
  TestHook<void(Plan&)> alter = {};  // corrupts plans before they are verified
};

// Counters since the model was loaded. `build_ns` is the time spent building. `refused` plans failed verification and
// count as failures too.
struct PlanStats {
  uint64_t hits = 0, misses = 0, evictions = 0, failures = 0, refused = 0;  // a hit: the program existed already
  int64_t build_ns = 0;
  size_t programs = 0;                            // cached now
  size_t arena_bytes = 0;                         // of the largest cached plan
  std::map<std::string, uint64_t> failed_passes;  // of the whole module, including at load
};

// A bounded cache of a method's programs by input signature. A signature that cannot be planned uses the method's
// general program. Thread-safe: a worker finds its recent programs in its own Frame without a lock; several workers
// that miss the same signature build it once. With background planning, a run uses the general program until a thread
// of this object has built the specialized one; only the very first program is always waited for.
class Specializations {
 public:
  using ProgramPtr = std::shared_ptr<const Program>;
  // Builds the program for these arguments; null if the general one is as good. Throws Error.
  using Build = std::function<ProgramPtr(std::span<const ops::Value> arguments)>;

  Specializations(const Program& general, size_t capacity, Build build)
      : general_(general), capacity_(std::max<size_t>(capacity, 1)), build_(std::move(build)) {}
  ~Specializations();

  // Valid until `frame` has run more other signatures than the cache holds.
  const Program& find(Frame& frame, std::span<const ops::Value> arguments, bool in_background);
  PlanStats stats() const;

 private:
  struct Entry {
    ProgramPtr program;  // null while it is being built, and for the general program
    bool is_ready = false;
    std::list<const Signature*>::iterator order;
  };
  struct Hash {
    size_t operator()(const Signature& signature) const { return signature.hash(); }
  };
  struct Job {
    Signature signature;
    std::vector<ops::Value> arguments;  // shapes without data
    std::shared_ptr<Entry> entry;
  };
  // Nullopt if it is being built and `may_wait` is false.
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

  const uint64_t id_ = next_id();  // another object may reuse the address
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

// A program that a worker ran recently, and its signature. `program` null: the general one.
struct RecentProgram {
  uint64_t owner = 0;  // its Specializations
  Signature signature;
  Specializations::ProgramPtr program;
};

}  // namespace tensord::jit
