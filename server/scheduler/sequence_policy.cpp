#include "server/scheduler/sequence_policy.h"

#include <algorithm>

namespace tensord::server {
namespace {

std::string text_of(const SequenceKey& key) { return key.text.empty() ? std::to_string(key.number) : key.text; }

// now + delay, or kNoDeadline on overflow.
int64_t later(int64_t now_ns, int64_t delay_ns) {
  int64_t out = 0;
  return __builtin_add_overflow(now_ns, delay_ns, &out) ? kNoDeadline : out;
}

// When a queued request next needs attention.
int64_t event_ns(const Sequence& sequence, const SequenceRequest& request) {
  return sequence.has_place ? request.deadline_ns : std::min(request.deadline_ns, request.place_until_ns);
}

}  // namespace

SequencePolicy::SequencePolicy(Options options)
    : options_(std::move(options)), places_(options_.instances, std::vector<SequencePtr>(options_.places)) {}

size_t SequencePolicy::add(SequenceRequestPtr request, int64_t now_ns, Rejections& rejected) {
  const auto reject = [&](ErrorCode code, std::string reason) {
    rejected.push_back({std::move(request), code, std::move(reason)});
    return kNoInstance;
  };
  if (waiting_ >= options_.max_waiting) return reject(ErrorCode::kResourceExhausted, "Exceeds maximum queue size");
  const auto found = open_.find(request->key);
  if (!request->is_start && found == open_.end()) {
    return reject(ErrorCode::kInvalidArgument,
                  concat("inference request for sequence ", text_of(request->key), " to model '", options_.model,
                         "' must specify the START flag on the first request of the sequence"));
  }
  // A second start request closes the previous sequence of this ID, which still finishes its queued requests.
  SequencePtr sequence = found == open_.end() ? nullptr : found->second;
  if (request->is_start) {
    if (sequence) close(*sequence);
    if (sequence) release(sequence);
    sequence = begin(request->key);
  }
  request->enqueued_ns = sequence->last_used_ns = now_ns;
  request->ticket = tickets_++;
  first_deadline_ns_ = std::min(first_deadline_ns_, event_ns(*sequence, *request));
  if (request->is_end) close(*sequence);
  sequence->waiting.push_back(std::move(request));
  ++waiting_;
  return sequence->has_place ? sequence->instance : kNoInstance;
}

SequenceBatch SequencePolicy::next(size_t instance, int64_t now_ns, Rejections& rejected) {
  if (now_ns >= first_deadline_ns_) reject_expired(now_ns, rejected);
  for (size_t i = 0; i < options_.places; ++i) {
    if (const SequencePtr sequence = places_[instance][i]) reject_expired_of(sequence, now_ns, rejected);
  }
  end_idle_sequences(instance, now_ns);
  SequenceBatch batch;
  pick(instance, now_ns, batch);
  if (batch.rows.empty()) batch.wake_ns = std::min(batch.wake_ns, next_event_ns(instance));
  return batch;
}

void SequencePolicy::done(const SequenceBatch& batch, int64_t now_ns) {
  for (const SequenceBatch::Row& row : batch.rows) {
    if (!row.sequence || !row.sequence->is_running) continue;
    row.sequence->is_running = false;
    row.sequence->last_used_ns = now_ns;
    release(row.sequence);
  }
}

void SequencePolicy::end(const SequencePtr& sequence, ErrorCode code, const std::string& reason, Rejections& rejected) {
  for (SequenceRequestPtr& request : sequence->waiting) {
    --waiting_;
    rejected.push_back({std::move(request), code, reason});
  }
  sequence->waiting.clear();
  close(*sequence);
  release(sequence);
}

void SequencePolicy::reject_expired(int64_t now_ns, Rejections& rejected) {
  first_deadline_ns_ = kNoDeadline;
  std::vector<SequencePtr> all(backlog_.begin(), backlog_.end());
  for (const auto& instance : places_) {
    std::copy_if(instance.begin(), instance.end(), std::back_inserter(all), [](const auto& s) { return s != nullptr; });
  }
  for (const SequencePtr& sequence : all) {
    reject_expired_of(sequence, now_ns, rejected);
    for (const SequenceRequestPtr& request : sequence->waiting) {
      first_deadline_ns_ = std::min(first_deadline_ns_, event_ns(*sequence, *request));
    }
  }
}

std::vector<SequenceRequestPtr> SequencePolicy::drain() {
  std::vector<SequenceRequestPtr> out;
  const auto take_all = [&](const SequencePtr& sequence) {
    if (!sequence) return;
    std::move(sequence->waiting.begin(), sequence->waiting.end(), std::back_inserter(out));
    sequence->waiting.clear();
  };
  for (const auto& instance : places_) std::for_each(instance.begin(), instance.end(), take_all);
  std::for_each(backlog_.begin(), backlog_.end(), take_all);
  waiting_ = 0;
  return out;
}

void SequencePolicy::take(const SequencePtr& sequence, SequenceBatch::Row& row) {
  row.sequence = sequence;
  row.request = std::move(sequence->waiting.front());
  sequence->waiting.pop_front();
  sequence->is_running = true;
  --waiting_;
}

const Sequence* SequencePolicy::oldest(const std::vector<SequencePtr>& places) {
  const Sequence* first = nullptr;
  for (const SequencePtr& sequence : places) {
    if (!sequence || sequence->waiting.empty()) continue;
    if (!first || sequence->waiting.front()->ticket < first->waiting.front()->ticket) first = sequence.get();
  }
  return first;
}

SequencePtr SequencePolicy::begin(const SequenceKey& key) {
  auto sequence = std::make_shared<Sequence>();
  sequence->key = key;
  open_[key] = sequence;
  if (!assign_slot(sequence)) backlog_.push_back(sequence);
  return sequence;
}

bool SequencePolicy::assign_slot(const SequencePtr& sequence) {
  for (size_t place = 0; place < options_.places; ++place) {
    for (size_t instance = 0; instance < places_.size(); ++instance) {
      if (places_[instance][place]) continue;
      places_[instance][place] = sequence;
      sequence->instance = instance;
      sequence->place = place;
      sequence->has_place = true;
      return true;
    }
  }
  return false;
}

void SequencePolicy::close(Sequence& sequence) {
  if (sequence.is_over) return;
  sequence.is_over = true;
  open_.erase(sequence.key);
}

// Gives the batch slot of a finished sequence to the next waiting one.
void SequencePolicy::release(const SequencePtr& sequence) {
  if (!sequence->is_over || sequence->is_running || !sequence->waiting.empty()) return;
  if (!sequence->has_place) {
    std::erase(backlog_, sequence);
    return;
  }
  places_[sequence->instance][sequence->place] = nullptr;
  sequence->has_place = false;
  if (backlog_.empty()) return;
  assign_slot(backlog_.front());
  backlog_.pop_front();
}

void SequencePolicy::reject_expired_of(const SequencePtr& sequence, int64_t now_ns, Rejections& rejected) {
  auto& waiting = sequence->waiting;
  const auto is_cancelled = [](const SequenceRequestPtr& request) { return request->is_cancelled(); };
  const auto is_late = [&](const SequenceRequestPtr& request) { return now_ns >= request->deadline_ns; };
  const bool has_cancelled = std::any_of(waiting.begin(), waiting.end(), is_cancelled);
  const bool gets_no_place = !sequence->has_place && std::any_of(waiting.begin(), waiting.end(), [&](const auto& it) {
    return now_ns >= it->place_until_ns;
  });
  const bool loses_start = !waiting.empty() && waiting.front()->is_start && is_late(waiting.front());
  const bool is_over = has_cancelled || gets_no_place || loses_start;
  if (!is_over && std::none_of(waiting.begin(), waiting.end(), is_late)) return;
  const auto reason_of = [&](const SequenceRequestPtr& request) -> std::pair<ErrorCode, const char*> {
    if (is_cancelled(request)) return {ErrorCode::kCancelled, "the request was cancelled"};
    if (is_late(request)) return {ErrorCode::kDeadlineExceeded, "Request timeout expired"};
    if (has_cancelled) return {ErrorCode::kCancelled, "another request of the sequence was cancelled"};
    if (gets_no_place) {
      return {ErrorCode::kDeadlineExceeded, "timeout of the corresponding sequence has been expired"};
    }
    return {ErrorCode::kDeadlineExceeded, "the first request of the sequence did not run"};
  };
  std::deque<SequenceRequestPtr> kept;
  for (SequenceRequestPtr& request : waiting) {
    if (!is_over && !is_late(request)) {
      kept.push_back(std::move(request));
      continue;
    }
    --waiting_;
    const auto [code, reason] = reason_of(request);
    rejected.push_back({std::move(request), code, reason});
  }
  waiting = std::move(kept);
  if (is_over) close(*sequence);
  release(sequence);
}

void SequencePolicy::end_idle_sequences(size_t instance, int64_t now_ns) {
  for (size_t i = 0; i < options_.places; ++i) {
    const SequencePtr sequence = places_[instance][i];
    if (!sequence || sequence->is_running || !sequence->waiting.empty()) continue;
    if (now_ns < later(sequence->last_used_ns, options_.idle_ns)) continue;
    close(*sequence);
    release(sequence);
  }
}

int64_t SequencePolicy::next_event_ns(size_t instance) const {
  int64_t first = first_deadline_ns_;
  for (const SequencePtr& sequence : places_[instance]) {
    if (sequence && sequence->waiting.empty()) first = std::min(first, later(sequence->last_used_ns, options_.idle_ns));
  }
  return first;
}

namespace {

SequencePolicy::Options with_a_row_each(SequencePolicy::Options options) {
  options.places = options.rows;
  return options;
}

}  // namespace

DirectSequencePolicy::DirectSequencePolicy(Options options, DirectOptions direct)
    : SequencePolicy(with_a_row_each(std::move(options))), direct_(direct) {}

void DirectSequencePolicy::pick(size_t instance, int64_t now_ns, SequenceBatch& batch) {
  const std::vector<SequencePtr>& rows = places(instance);
  const Sequence* first = oldest(rows);
  if (!first) return;
  const std::string shape = first->waiting.front()->shape;
  size_t ready = 0, end = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i]) continue;
    end = i + 1;
    ready += !rows[i]->waiting.empty() && rows[i]->waiting.front()->shape == shape ? 1 : 0;
  }
  const int64_t until_ns = later(first->waiting.front()->enqueued_ns, options().max_delay_ns);
  const double wanted = direct_.minimum_utilization * static_cast<double>(rows.size());
  if (static_cast<double>(ready) < wanted && now_ns < until_ns) {
    batch.wake_ns = until_ns;
    return;
  }
  for (size_t i = 0; i < end; ++i) {
    SequenceBatch::Row row{.sequence = rows[i], .request = nullptr};
    const bool is_ready = rows[i] && !rows[i]->waiting.empty() && rows[i]->waiting.front()->shape == shape;
    if (is_ready) take(rows[i], row);
    if (is_ready || direct_.keeps_rows) batch.rows.push_back(std::move(row));
  }
}

OldestSequencePolicy::OldestSequencePolicy(Options options, OldestOptions oldest)
    : SequencePolicy(std::move(options)), oldest_(std::move(oldest)) {}

// Returns 0 to wait for more requests.
size_t OldestSequencePolicy::batch_size(size_t ready, int64_t waited_ns) const {
  const size_t max = std::min(ready, options().rows);
  size_t preferred = 0;
  for (const int64_t size : oldest_.preferred_sizes) {
    if (static_cast<size_t>(size) <= max) preferred = std::max(preferred, static_cast<size_t>(size));
  }
  if (preferred > 0) return preferred;
  return max == options().rows || waited_ns >= options().max_delay_ns ? max : 0;
}

void OldestSequencePolicy::pick(size_t instance, int64_t now_ns, SequenceBatch& batch) {
  std::vector<SequencePtr> ready;
  for (const SequencePtr& sequence : places(instance)) {
    if (sequence && !sequence->waiting.empty()) ready.push_back(sequence);
  }
  if (ready.empty()) return;
  std::sort(ready.begin(), ready.end(), [](const SequencePtr& a, const SequencePtr& b) {
    return a->waiting.front()->ticket < b->waiting.front()->ticket;
  });
  const SequenceRequest& first = *ready.front()->waiting.front();
  const std::string shape = first.shape;
  const int64_t enqueued_ns = first.enqueued_ns;
  const auto differs = [&](const SequencePtr& sequence) { return sequence->waiting.front()->shape != shape; };
  if (oldest_.preserves_ordering) {
    ready.erase(std::find_if(ready.begin(), ready.end(), differs), ready.end());
  } else {
    std::erase_if(ready, differs);
  }
  const size_t size = batch_size(ready.size(), now_ns - enqueued_ns);
  if (size == 0) {
    batch.wake_ns = later(enqueued_ns, options().max_delay_ns);
    return;
  }
  batch.rows.resize(size);
  for (size_t i = 0; i < size; ++i) take(ready[i], batch.rows[i]);
}

}  // namespace tensord::server
