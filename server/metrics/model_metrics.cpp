#include "server/metrics/model_metrics.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

constexpr int kUnknownCode = 2, kCancelledCode = 1, kOkCode = 0;
constexpr uint64_t kShardBatches = 64;    // larger batch sizes are counted under a lock
constexpr size_t kMaxLargeBatches = 256;  // distinct sizes above that; further ones are rounded to powers of two
constexpr uint64_t kMaxResponses = 1024;  // distinct response indices; later responses count as the last one

using Counter = std::atomic<uint64_t>;

void add(Counter& counter, uint64_t value) { counter.fetch_add(value, std::memory_order_relaxed); }
uint64_t get(const Counter& counter) { return counter.load(std::memory_order_relaxed); }

// Times come from different threads: a missing or reversed pair counts as 0 rather than as a negative duration.
uint64_t between(int64_t from_ns, int64_t to_ns) {
  return from_ns > 0 && to_ns > from_ns ? static_cast<uint64_t>(to_ns - from_ns) : 0;
}

FailureReason reason_of(const RequestTimes& times, int code) {
  if (code == kCancelledCode) return FailureReason::kCanceled;
  if (times.compute_start_ns > 0) return FailureReason::kBackend;
  return times.queue_start_ns > 0 ? FailureReason::kRejected : FailureReason::kOther;
}

void add(DurationSum& sum, uint64_t ns) {
  ++sum.count;
  sum.ns += ns;
}

uint64_t unix_time_ms() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

size_t next_thread_number() {
  static std::atomic<size_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

const char* to_string(FailureReason reason) {
  switch (reason) {
    case FailureReason::kRejected: return "REJECTED";
    case FailureReason::kCanceled: return "CANCELED";
    case FailureReason::kBackend: return "BACKEND";
    case FailureReason::kOther: return "OTHER";
  }
  return "OTHER";
}

uint64_t DurationHistogram::count() const {
  uint64_t total = 0;
  for (const uint64_t interval : intervals) total += interval;
  return total;
}

// Counters for the threads that share one shard.
struct alignas(64) ModelMetrics::Shard {
  struct Histogram {
    std::array<Counter, kDurationIntervals> intervals{};
    void count(uint64_t ns) { add(intervals[duration_interval(static_cast<int64_t>(ns))], 1); }
  };
  struct Batch {
    Counter count{0}, input_ns{0}, infer_ns{0}, output_ns{0};
  };
  std::array<Counter, kStatusCodes> requests{};
  std::array<Counter, kFailureReasons> failures{};
  Counter ok_ran{0};  // requests that a run answered successfully
  Counter ok_ns{0}, fail_ns{0}, queued_ok{0}, queue_ok_ns{0}, queue_fail_ns{0};
  Counter compute_input_ns{0}, compute_infer_ns{0}, compute_output_ns{0};  // of successful requests
  Counter failed_executions{0};
  Counter cache_hits{0}, cache_hit_ns{0}, cache_misses{0}, cache_miss_ns{0};
  Counter received{0}, sent{0}, copied{0};
  Counter first_response_ns{0}, next_response_ns{0};
  std::atomic<int64_t> in_flight{0}, pending{0};
  std::atomic<int64_t> last_request_ns{0};
  std::array<Batch, kShardBatches + 1> batches{};  // by batch size
  std::array<Histogram, kPhases> phases{};

  Histogram& operator[](Phase phase) { return phases[static_cast<size_t>(phase)]; }
};

ModelMetrics::ModelMetrics(std::string name, std::string version)
    : name_(std::move(name)), version_(std::move(version)) {}

ModelMetrics::~ModelMetrics() {
  for (auto& slot : shards_) delete slot.load();
}

ModelMetrics::Shard& ModelMetrics::shard() {
  static thread_local const size_t number = next_thread_number();
  std::atomic<Shard*>& slot = shards_[number % kShards];
  Shard* shard = slot.load(std::memory_order_acquire);
  if (shard) [[likely]]
    return *shard;
  auto made = std::make_unique<Shard>();
  if (slot.compare_exchange_strong(shard, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *shard;
}

void ModelMetrics::keep_failure(std::string_view error) {
  const uint64_t now_ms = unix_time_ms();
  const MutexLock lock(mutex_);
  last_failure_.error.assign(error.substr(0, kMaxErrorBytes));
  last_failure_.unix_ms = now_ms;
}

void ModelMetrics::count_answer(const RequestTimes& times, int status_code, std::string_view error) {
  const bool is_known = status_code >= 0 && status_code < kStatusCodes;
  const bool is_ok = status_code == kOkCode;
  const int64_t now_ns = Clock::system().now_ns();
  Shard& s = shard();
  add(s.requests[static_cast<size_t>(is_known ? status_code : kUnknownCode)], 1);
  const uint64_t total_ns = between(times.arrived_ns, now_ns);
  add(is_ok ? s.ok_ns : s.fail_ns, total_ns);
  s[Phase::kRequest].count(total_ns);
  s.last_request_ns.store(times.arrived_ns, std::memory_order_relaxed);
  if (times.queue_start_ns > 0) {
    const uint64_t queue_ns =
        between(times.queue_start_ns, times.compute_start_ns > 0 ? times.compute_start_ns : now_ns);
    s[Phase::kQueue].count(queue_ns);
    add(is_ok ? s.queue_ok_ns : s.queue_fail_ns, queue_ns);
    if (is_ok) add(s.queued_ok, 1);
  }
  if (!is_ok) {
    add(s.failures[static_cast<size_t>(reason_of(times, status_code))], 1);
    if (status_code != kCancelledCode) keep_failure(error);
  } else if (times.compute_start_ns > 0) {
    add(s.ok_ran, 1);
    add(s.compute_input_ns, between(times.compute_start_ns, times.compute_input_end_ns));
    add(s.compute_infer_ns, between(times.compute_input_end_ns, times.compute_output_start_ns));
    add(s.compute_output_ns, between(times.compute_output_start_ns, times.compute_end_ns));
  }
}

void ModelMetrics::count_execution(int64_t batch_size, const RequestTimes& times, bool is_success) {
  Shard& s = shard();
  if (!is_success) {
    add(s.failed_executions, 1);
    return;
  }
  const uint64_t input_ns = between(times.compute_start_ns, times.compute_input_end_ns);
  const uint64_t infer_ns = between(times.compute_input_end_ns, times.compute_output_start_ns);
  const uint64_t output_ns = between(times.compute_output_start_ns, times.compute_end_ns);
  s[Phase::kComputeInput].count(input_ns);
  s[Phase::kCompute].count(infer_ns);
  s[Phase::kComputeOutput].count(output_ns);
  auto size = static_cast<uint64_t>(std::max<int64_t>(batch_size, 0));
  if (size <= kShardBatches) {
    Shard::Batch& batch = s.batches[size];
    add(batch.count, 1);
    add(batch.input_ns, input_ns);
    add(batch.infer_ns, infer_ns);
    add(batch.output_ns, output_ns);
    return;
  }
  const MutexLock lock(mutex_);
  if (large_batches_.size() >= kMaxLargeBatches && !large_batches_.contains(size)) size = std::bit_ceil(size);
  BatchCounts& batch = large_batches_[size];
  ++batch.count;
  batch.input_ns += input_ns;
  batch.infer_ns += infer_ns;
  batch.output_ns += output_ns;
}

void ModelMetrics::count_response(uint64_t index, const RequestTimes& times, int64_t previous_ns, int status_code,
                                  bool is_empty) {
  const uint64_t waited_ns = between(previous_ns, Clock::system().now_ns());
  if (status_code == kOkCode && !is_empty) {
    Shard& s = shard();
    s[index == 0 ? Phase::kFirstResponse : Phase::kNextResponse].count(waited_ns);
    add(index == 0 ? s.first_response_ns : s.next_response_ns, waited_ns);
  }
  const MutexLock lock(mutex_);
  const auto slot = static_cast<size_t>(std::min(index, kMaxResponses - 1));
  if (responses_.size() <= slot) responses_.resize(slot + 1);
  ResponseCounts& response = responses_[slot];
  if (status_code == kCancelledCode) {
    add(response.cancel, waited_ns);
  } else if (status_code != kOkCode) {
    add(response.fail, waited_ns);
  } else if (is_empty) {
    add(response.empty_response, waited_ns);
  } else {
    add(response.success, waited_ns);
    add(response.compute_infer, between(times.compute_input_end_ns, times.compute_output_start_ns));
    add(response.compute_output, between(times.compute_output_start_ns, times.compute_end_ns));
  }
}

void ModelMetrics::count_cache_hit(int64_t ns) {
  Shard& s = shard();
  add(s.cache_hits, 1);
  add(s.cache_hit_ns, static_cast<uint64_t>(std::max<int64_t>(ns, 0)));
}
void ModelMetrics::count_cache_miss(int64_t ns) {
  Shard& s = shard();
  add(s.cache_misses, 1);
  add(s.cache_miss_ns, static_cast<uint64_t>(std::max<int64_t>(ns, 0)));
}
void ModelMetrics::add_received(uint64_t bytes) { add(shard().received, bytes); }
void ModelMetrics::add_sent(uint64_t bytes) { add(shard().sent, bytes); }
void ModelMetrics::add_copied(uint64_t bytes) {
  if (bytes != 0) add(shard().copied, bytes);
}
void ModelMetrics::add_in_flight(int delta) { shard().in_flight.fetch_add(delta, std::memory_order_relaxed); }
void ModelMetrics::add_pending(int delta) { shard().pending.fetch_add(delta, std::memory_order_relaxed); }
void ModelMetrics::set_load_seconds(double value) { load_seconds_ = value; }
void ModelMetrics::set_ready(bool is_ready) { is_ready_ = is_ready; }
void ModelMetrics::set_workers(size_t workers) { workers_ = workers; }
void ModelMetrics::set_has_cache(bool has_cache) { has_cache_ = has_cache; }
void ModelMetrics::set_tags(std::map<std::string, std::string> tags) {
  const MutexLock lock(mutex_);
  tags_ = std::move(tags);
}
void ModelMetrics::set_precision(std::string name) {
  const MutexLock lock(mutex_);
  precision_ = std::move(name);
}

void ModelMetrics::add_to(ModelCounts& out, const Shard& s) const {
  for (size_t i = 0; i < out.requests.size(); ++i) out.requests[i] += get(s.requests[i]);
  for (size_t i = 0; i < out.failures.size(); ++i) out.failures[i] += get(s.failures[i]);
  for (size_t phase = 0; phase < kPhases; ++phase) {
    for (size_t i = 0; i < kDurationIntervals; ++i) {
      out.phases[phase].intervals[i] += get(s.phases[phase].intervals[i]);
    }
  }
  const auto sum_of = [&out](Phase phase) -> uint64_t& { return out.phases[static_cast<size_t>(phase)].sum_ns; };
  out.success.ns += get(s.ok_ns);
  out.fail.ns += get(s.fail_ns);
  sum_of(Phase::kRequest) += get(s.ok_ns) + get(s.fail_ns);
  sum_of(Phase::kQueue) += get(s.queue_ok_ns) + get(s.queue_fail_ns);
  sum_of(Phase::kFirstResponse) += get(s.first_response_ns);
  sum_of(Phase::kNextResponse) += get(s.next_response_ns);
  const auto add_sum = [](DurationSum& to, const Counter& count, const Counter& ns) {
    to.count += get(count);
    to.ns += get(ns);
  };
  add_sum(out.queue, s.queued_ok, s.queue_ok_ns);
  add_sum(out.compute_input, s.ok_ran, s.compute_input_ns);
  add_sum(out.compute_infer, s.ok_ran, s.compute_infer_ns);
  add_sum(out.compute_output, s.ok_ran, s.compute_output_ns);
  add_sum(out.cache_hit, s.cache_hits, s.cache_hit_ns);
  add_sum(out.cache_miss, s.cache_misses, s.cache_miss_ns);
  out.failed_executions += get(s.failed_executions);
  out.received_bytes += get(s.received);
  out.sent_bytes += get(s.sent);
  out.copied_bytes += get(s.copied);
  out.in_flight += s.in_flight.load(std::memory_order_relaxed);
  out.pending += s.pending.load(std::memory_order_relaxed);
  for (uint64_t size = 0; size < s.batches.size(); ++size) {
    const Shard::Batch& from = s.batches[size];
    if (get(from.count) == 0) continue;
    BatchCounts& to = out.batches[size];
    to.count += get(from.count);
    to.input_ns += get(from.input_ns);
    to.infer_ns += get(from.infer_ns);
    to.output_ns += get(from.output_ns);
  }
}

ModelCounts ModelMetrics::counts() const {
  ModelCounts out;
  out.name = name_;
  out.version = version_;
  {
    const MutexLock lock(mutex_);
    out.tags = tags_;
    out.precision = precision_;
    out.batches = large_batches_;
    out.responses = responses_;
    out.last_failure = last_failure_;
  }
  int64_t last_ns = 0;
  for (const auto& slot : shards_) {
    const Shard* shard = slot.load(std::memory_order_acquire);
    if (!shard) continue;
    add_to(out, *shard);
    last_ns = std::max(last_ns, shard->last_request_ns.load(std::memory_order_relaxed));
  }
  out.success.count = out.requests[kOkCode];
  for (size_t code = 1; code < out.requests.size(); ++code) out.fail.count += out.requests[code];
  for (const auto& [size, batch] : out.batches) {
    out.execution_count += batch.count;
    out.inference_count += batch.count * size;
    out.phases[static_cast<size_t>(Phase::kComputeInput)].sum_ns += batch.input_ns;
    out.phases[static_cast<size_t>(Phase::kCompute)].sum_ns += batch.infer_ns;
    out.phases[static_cast<size_t>(Phase::kComputeOutput)].sum_ns += batch.output_ns;
  }
  if (last_ns > 0) {
    out.last_request_unix_ms = unix_time_ms() - static_cast<uint64_t>((Clock::system().now_ns() - last_ns) / 1'000'000);
  }
  out.load_seconds = load_seconds_;
  out.is_ready = is_ready_;
  out.has_cache = has_cache_;
  out.workers = out.is_ready ? workers_.load() : 0;
  return out;
}

}  // namespace tensord::server
