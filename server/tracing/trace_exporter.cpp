#include "server/tracing/trace_exporter.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

TraceExporter::TraceExporter(std::unique_ptr<TraceSink> sink, Options options)
    : sink_(std::move(sink)), options_(options) {}

TraceExporter::~TraceExporter() { stop(); }

void TraceExporter::add(TraceRecord record) {
  const MutexLock lock(mutex_);
  if (is_stopped_ || waiting_.size() >= options_.max_waiting) {
    // Logs at powers of two, so that many drops do not flood the log.
    ++dropped_;
    if (std::has_single_bit(dropped_)) log(LogLevel::kWarning, "traces were dropped", {{"traces", dropped_}});
    return;
  }
  waiting_.push_back(std::move(record));
  if (!thread_.joinable()) thread_ = Thread("trace-export", [this] { work(); });
  if (waiting_.size() == 1 || waiting_.size() >= options_.batch_size) changed_.notify_all();
}

void TraceExporter::stop() {
  Thread thread;
  {
    const MutexLock lock(mutex_);
    if (is_stopped_) return;
    is_stopped_ = true;
    thread = std::move(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
  sink_->finish();
}

void TraceExporter::work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    changed_.wait_for(lock, std::chrono::milliseconds(options_.delay_ms), [this]() TENSORD_REQUIRES(mutex_) {
      return is_stopped_ || waiting_.size() >= options_.batch_size;
    });
    std::vector<TraceRecord> records;
    const size_t count = options_.delay_ms > 0 ? std::min(waiting_.size(), options_.batch_size) : waiting_.size();
    records.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      records.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    lock.unlock();
    run_logged("trace-export", [&] { sink_->write(std::move(records)); });
    lock.lock();
  }
}

}  // namespace tensord::server
