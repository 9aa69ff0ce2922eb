#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/scheduler/task.h"

namespace tensord::server {

// A client's id of a sequence: a nonzero number or a string (Triton's CORRID).
struct SequenceKey {
  uint64_t number = 0;
  std::string text;
  auto operator<=>(const SequenceKey&) const = default;
};

// A waiting request of a sequence.
class SequenceRequest {
 public:
  virtual ~SequenceRequest() = default;
  // May become true at any time.
  virtual bool is_cancelled() const = 0;

  SequenceKey key;
  bool is_start = false, is_end = false;
  std::string shape;                     // only requests with equal shapes share a batch
  int64_t deadline_ns = kNoDeadline;     // rejected after it
  int64_t place_until_ns = kNoDeadline;  // until when its sequence may wait for a place
  int64_t enqueued_ns = 0;               // set by the policy
  uint64_t ticket = 0;                   // position in the order of arrival; set by the policy
};
using SequenceRequestPtr = std::unique_ptr<SequenceRequest>;

// An open sequence. `data` belongs to the strategy; only the thread that runs a batch with this sequence may touch it.
struct Sequence {
  SequenceKey key;
  std::shared_ptr<void> data;

  // Used by the policy only.
  std::deque<SequenceRequestPtr> waiting;
  int64_t last_used_ns = 0;
  size_t instance = 0, place = 0;
  bool has_place = false;
  bool is_running = false;
  bool is_over = false;  // accepts no more requests
};
using SequencePtr = std::shared_ptr<Sequence>;

// The requests to run together on one instance, one per row.
struct SequenceBatch {
  struct Row {
    SequencePtr sequence;        // null: the row is free
    SequenceRequestPtr request;  // null: the sequence has no request to run
  };
  std::vector<Row> rows;
  // If the batch is empty: the time to call next() again.
  int64_t wake_ns = kNoDeadline;
};

// A request to answer with an error.
struct SequenceRejection {
  SequenceRequestPtr request;
  ErrorCode code;
  std::string reason;
};

// Decides which requests of which sequences run next on which instance of a model. A sequence has one of a bounded
// number of places on one instance until it ends; its requests run in order, one at a time. If no place is free, the
// sequence waits, and ends if one of its requests has waited for too long. A cancelled request ends its sequence and
// rejects the waiting requests, because later ones depend on the state that it would have written. A request that
// misses its deadline is rejected and leaves the sequence open, unless it is the first. Has no clock, thread or model;
// the caller locks.
class SequencePolicy {
 public:
  struct Options {
    std::string model;  // for messages
    size_t instances = 1;
    size_t rows = 1;                  // the most of a batch
    size_t places = 1;                // open sequences per instance
    int64_t idle_ns = 1'000'000'000;  // Triton's max_sequence_idle_microseconds
    size_t max_waiting = 1024;
    int64_t max_delay_ns = 0;  // how long a request waits for a batch to fill
  };
  using Rejections = std::vector<SequenceRejection>;
  static constexpr size_t kNoInstance = SIZE_MAX;

  explicit SequencePolicy(Options options);
  virtual ~SequencePolicy() = default;

  // Returns the instance that should call next(), or kNoInstance.
  size_t add(SequenceRequestPtr request, int64_t now_ns, Rejections& rejected);
  // The batch that the instance runs now. REQUIRES: done() was called for its previous batch.
  SequenceBatch next(size_t instance, int64_t now_ns, Rejections& rejected);
  // The batch has run. Its requests may have been moved out of it.
  void done(const SequenceBatch& batch, int64_t now_ns);
  // Ends the sequence and rejects its waiting requests.
  void end(const SequencePtr& sequence, ErrorCode code, const std::string& reason, Rejections& rejected);
  // Rejects all cancelled and expired requests.
  void reject_expired(int64_t now_ns, Rejections& rejected);
  // Removes all waiting requests.
  std::vector<SequenceRequestPtr> drain();

  size_t waiting() const { return waiting_; }
  size_t open_sequences() const { return open_.size(); }
  // The earliest time at which reject_expired() may have something to do; kNoDeadline: never.
  int64_t next_expiry_ns() const { return first_deadline_ns_; }

 protected:
  // Fills the batch from places(instance), or sets its wake_ns.
  virtual void pick(size_t instance, int64_t now_ns, SequenceBatch& batch) = 0;
  const std::vector<SequencePtr>& places(size_t instance) const { return places_[instance]; }
  const Options& options() const { return options_; }
  // Moves the first request of the sequence into the row.
  void take(const SequencePtr& sequence, SequenceBatch::Row& row);
  // The sequence whose first request is the oldest; null: none has a request.
  static const Sequence* oldest(const std::vector<SequencePtr>& places);

 private:
  SequencePtr begin(const SequenceKey& key);
  bool assign_slot(const SequencePtr& sequence);
  void close(Sequence& sequence);
  void release(const SequencePtr& sequence);
  void reject_expired_of(const SequencePtr& sequence, int64_t now_ns, Rejections& rejected);
  void end_idle_sequences(size_t instance, int64_t now_ns);
  int64_t next_event_ns(size_t instance) const;

  const Options options_;
  std::map<SequenceKey, SequencePtr> open_;       // sequences that accept requests
  std::vector<std::vector<SequencePtr>> places_;  // by instance; null: free
  std::deque<SequencePtr> backlog_;               // sequences that wait for a place, in order
  size_t waiting_ = 0;
  uint64_t tickets_ = 0;
  int64_t first_deadline_ns_ = kNoDeadline;  // no waiting request expires earlier
};

// Triton's direct strategy: a sequence keeps its row until it ends. A batch has all rows up to the last used one.
class DirectSequencePolicy final : public SequencePolicy {
 public:
  struct DirectOptions {
    double minimum_utilization =
        0;                   // the share of rows that must have a request, unless one has waited for max_delay_ns
    bool keeps_rows = true;  // false: leave out rows without a request
  };
  // Sets options.places to options.rows.
  DirectSequencePolicy(Options options, DirectOptions direct);

 protected:
  void pick(size_t instance, int64_t now_ns, SequenceBatch& batch) override;

 private:
  const DirectOptions direct_;
};

// Triton's oldest strategy: a batch has the oldest requests, at most one per sequence.
class OldestSequencePolicy final : public SequencePolicy {
 public:
  struct OldestOptions {
    std::vector<int64_t> preferred_sizes;
    bool preserves_ordering = false;  // requests run in the order of arrival
  };
  OldestSequencePolicy(Options options, OldestOptions oldest);

 protected:
  void pick(size_t instance, int64_t now_ns, SequenceBatch& batch) override;

 private:
  size_t batch_size(size_t ready, int64_t waited_ns) const;
  const OldestOptions oldest_;
};

}  // namespace tensord::server
