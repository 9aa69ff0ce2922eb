#include "core/jit/runtime/specializations.h"

#include <algorithm>
#include <exception>
#include <new>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/jit/runtime/plan/plan_verifier.h"

namespace tensord::jit {

using ops::Value;

namespace {

// A worker with more signatures than this uses the method's cache.
constexpr size_t kMaxRecent = 64;
// Signatures queued for building; further ones are interpreted.
constexpr size_t kMaxJobs = 16;

}  // namespace

uint64_t Specializations::next_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

const Program& Specializations::find(Frame& frame, std::span<const Value> arguments, bool in_background) {
  const int threads = thread_budget();
  std::vector<RecentProgram>& recent = frame.recent_programs();
  const auto chosen = [&](const RecentProgram& found) -> const Program& {
    return found.program ? *found.program : general_;
  };
  if (!recent.empty() && recent.front().owner == id_ && recent.front().signature.matches(arguments, threads)) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    return chosen(recent.front());
  }
  Signature signature(arguments, threads);
  if (!signature.is_usable()) return general_;
  const auto known = std::find_if(recent.begin(), recent.end(), [&](const RecentProgram& other) {
    return other.owner == id_ && other.signature == signature;
  });
  if (known != recent.end()) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    std::rotate(recent.begin(), known, known + 1);
    return chosen(recent.front());
  }
  std::optional<ProgramPtr> program = get(signature, arguments, !in_background);
  if (!program) return general_;
  if (recent.size() >= std::min(kMaxRecent, capacity_)) recent.pop_back();
  recent.insert(recent.begin(), {id_, std::move(signature), std::move(*program)});
  return chosen(recent.front());
}

std::optional<Specializations::ProgramPtr> Specializations::get(const Signature& signature,
                                                                std::span<const Value> arguments, bool may_wait) {
  MutexLock lock(mutex_);
  const auto [it, is_new] = entries_.try_emplace(signature);
  if (!is_new) {
    const std::shared_ptr<Entry> entry = it->second;
    order_.splice(order_.begin(), order_, entry->order);
    if (!entry->is_ready && !may_wait) return std::nullopt;
    built_.wait(lock, [&]() TENSORD_REQUIRES(mutex_) { return entry->is_ready; });
    ++stats_.hits;
    return entry->program;
  }
  ++stats_.misses;
  order_.push_front(&it->first);
  const auto entry = it->second = std::make_shared<Entry>();
  entry->order = order_.begin();
  if (!may_wait && entries_.size() > 1) {
    if (!enqueue(signature, arguments, entry)) {
      order_.erase(entry->order);
      entries_.erase(it);
    }
    return std::nullopt;
  }
  lock.unlock();
  Built built = build(arguments);
  lock.lock();
  finish(*entry, std::move(built));
  return entry->program;
}

bool Specializations::enqueue(const Signature& signature, std::span<const Value> arguments,
                              const std::shared_ptr<Entry>& entry) {
  if (jobs_.size() >= kMaxJobs) return false;
  if (!builder_.joinable()) {
    try {
      builder_ = Thread("plans", [this] { build_jobs(); });
    } catch (const Error&) {
      return false;  // no thread available: this shape is interpreted, and the next run tries again
    }
  }
  Job job{signature, {}, entry};
  for (const Value& argument : arguments) {
    job.arguments.push_back(abstract_value(argument));
    if (job.arguments.back().is_none()) job.arguments.back() = argument;
  }
  jobs_.push_back(std::move(job));
  queued_.notify_one();
  return true;
}

void Specializations::build_jobs() {
  MutexLock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [&]() TENSORD_REQUIRES(mutex_) { return is_stopping_ || !jobs_.empty(); });
    if (is_stopping_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    set_thread_budget(job.signature.threads());
    lock.unlock();
    Built built = build(job.arguments);
    lock.lock();
    finish(*job.entry, std::move(built));
  }
}

Specializations::~Specializations() {
  Thread builder = stop();
  queued_.notify_all();
  if (builder.joinable()) builder.join();
}

// A function of its own, like others here, because Clang's thread-safety analysis skips destructors.
Thread Specializations::stop() {
  const MutexLock lock(mutex_);
  is_stopping_ = true;
  return std::move(builder_);
}

namespace {

bool is_bug(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  return ours ? ours->code() == ErrorCode::kInternal : dynamic_cast<const std::bad_alloc*>(&error) == nullptr;
}

}  // namespace

// What cannot be planned is interpreted; the run reports errors, if any.
Specializations::Built Specializations::build(std::span<const Value> arguments) const {
  const int64_t start_ns = Clock::system().now_ns();
  Built built;
  // Not cancelled with the request: others wait for it, and a cancelled build would count as a failed one.
  const ContextPart<&ExecutionContext::cancellation> whole(nullptr);
  try {
    built.program = build_(arguments);
  } catch (const PlanRefused& refused) {
    built.has_failed = built.is_refused = true;
    log(LogLevel::kError, "a plan is not proven, so these shapes are interpreted; please report this",
        {{"arguments", describe_arguments(arguments)}, {"reason", refused.what()}});
  } catch (const std::exception& error) {
    built.has_failed = true;
    log(is_bug(error) ? LogLevel::kError : LogLevel::kDebug, "a shape is interpreted, not planned",
        {{"arguments", describe_arguments(arguments)}, {"reason", error.what()}});
  }
  built.build_ns = Clock::system().now_ns() - start_ns;
  return built;
}

void Specializations::finish(Entry& entry, Built built) {
  stats_.build_ns += built.build_ns;
  stats_.failures += built.has_failed;
  stats_.refused += built.is_refused;
  entry.program = std::move(built.program);
  entry.is_ready = true;
  built_.notify_all();
  evict();
}

void Specializations::evict() {
  auto oldest = order_.end();
  while (entries_.size() > capacity_ && oldest != order_.begin()) {
    --oldest;
    const auto entry = entries_.find(**oldest);
    if (!entry->second->is_ready) continue;  // another thread waits for it
    oldest = order_.erase(oldest);
    entries_.erase(entry);
    ++stats_.evictions;
  }
}

PlanStats Specializations::stats() const {
  MutexLock lock(mutex_);
  PlanStats stats = stats_;
  stats.hits += hits_.load(std::memory_order_relaxed);
  stats.programs = entries_.size();
  for (const auto& [signature, entry] : entries_) {
    if (entry->program) stats.arena_bytes = std::max(stats.arena_bytes, plan_totals(*entry->program).arena_bytes);
  }
  return stats;
}

}  // namespace tensord::jit
