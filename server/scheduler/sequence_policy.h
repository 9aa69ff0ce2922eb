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

// What a client calls a sequence: a number other than 0, or a text.
struct SequenceKey {
  uint64_t number = 0;
  std::string text;
  auto operator<=>(const SequenceKey&) const = default;
};

// One request of a sequence, waiting for its turn.
class SequenceRequest {
 public:
  virtual ~SequenceRequest() = default;
  // May turn true at any time.
  virtual bool is_cancelled() const = 0;

  SequenceKey key;
  bool is_start = false, is_end = false;
  std::string shape;                     // only requests with the same one run together
  int64_t deadline_ns = kNoDeadline;     // nobody waits for the answer after it
  int64_t place_until_ns = kNoDeadline;  // how long its sequence may wait for a place
  int64_t enqueued_ns = 0;               // set by the policy
  uint64_t ticket = 0;                   // its number in the order of arrival; set by the policy
};
using SequenceRequestPtr = std::unique_ptr<SequenceRequest>;

// A sequence that is going on. `data` is for whoever runs it: nobody but the holder of a batch touches it.
struct Sequence {
  SequenceKey key;
  std::shared_ptr<void> data;

  // The policy's own.
  std::deque<SequenceRequestPtr> waiting;
  int64_t last_used_ns = 0;
  size_t instance = 0, place = 0;
  bool has_place = false;
  bool is_running = false;
  bool is_over = false;  // takes no more requests
};
using SequencePtr = std::shared_ptr<Sequence>;

// Requests to run together on one instance, one row each.
struct SequenceBatch {
  struct Row {
    SequencePtr sequence;        // null: nothing has this row
    SequenceRequestPtr request;  // null: the sequence has nothing to run now
  };
  std::vector<Row> rows;
  // When it is empty: ask again at this time.
  int64_t wake_ns = kNoDeadline;
};

// A request that will not run, and what to answer.
struct SequenceRejection {
  SequenceRequestPtr request;
  ErrorCode code;
  std::string reason;
};

// Decides which requests of which sequences run next on which instance of a model. A sequence stays on one instance,
// where it has one of a bounded number of places until it ends; its requests run in order, one at a time. Sequences
// that find no place wait for one, and are over when one of their requests has waited for it for too long. A cancelled
// request ends its sequence and what waits of it: what comes behind it would count on what it did not do. One whose
// deadline is over leaves its sequence as it was, but for the first. Pure: no clock, no thread, no model; used under
// one lock.
class SequencePolicy {
 public:
  struct Options {
    std::string model;  // for messages
    size_t instances = 1;
    size_t rows = 1;                  // of a batch, at most
    size_t places = 1;                // sequences of an instance at a time
    int64_t idle_ns = 1'000'000'000;  // a sequence without requests for longer is over
    size_t max_waiting = 1024;
    int64_t max_delay_ns = 0;  // how long a request waits for others
  };
  using Rejections = std::vector<SequenceRejection>;
  static constexpr size_t kNoInstance = SIZE_MAX;

  explicit SequencePolicy(Options options);
  virtual ~SequencePolicy() = default;

  // Gives back the instance that should look, if one should.
  size_t add(SequenceRequestPtr request, int64_t now_ns, Rejections& rejected);
  // What the instance runs now. REQUIRES: the batch it got before is done.
  SequenceBatch next(size_t instance, int64_t now_ns, Rejections& rejected);
  // The batch has run (its requests are gone or still there, that is all the same).
  void done(const SequenceBatch& batch, int64_t now_ns);
  // The sequence cannot go on: it takes no more requests, and what waits of it is rejected.
  void end(const SequencePtr& sequence, ErrorCode code, const std::string& reason, Rejections& rejected);
  // Drops what is cancelled or too late, wherever it waits.
  void drop_dead(int64_t now_ns, Rejections& rejected);
  // Everything that waits.
  std::vector<SequenceRequestPtr> drain();

  size_t waiting() const { return waiting_; }
  size_t open_sequences() const { return open_.size(); }
  // When drop_dead() is next due, at the earliest; kNoDeadline: never.
  int64_t next_expiry_ns() const { return first_deadline_ns_; }

 protected:
  // Fills the batch from places(instance), or says when to look again.
  virtual void pick(size_t instance, int64_t now_ns, SequenceBatch& batch) = 0;
  const std::vector<SequencePtr>& places(size_t instance) const { return places_[instance]; }
  const Options& options() const { return options_; }
  // Takes the first request of the sequence into the row.
  void take(const SequencePtr& sequence, SequenceBatch::Row& row);
  // Of those with a request, the one whose first came first; null when there is none.
  static const Sequence* oldest(const std::vector<SequencePtr>& places);

 private:
  SequencePtr begin(const SequenceKey& key);
  bool give_place(const SequencePtr& sequence);
  void close(Sequence& sequence);
  void release(const SequencePtr& sequence);
  void drop_dead_of(const SequencePtr& sequence, int64_t now_ns, Rejections& rejected);
  void end_idle(size_t instance, int64_t now_ns);
  int64_t next_event_ns(size_t instance) const;

  const Options options_;
  std::map<SequenceKey, SequencePtr> open_;       // those that take requests
  std::vector<std::vector<SequencePtr>> places_;  // of each instance; null: free
  std::deque<SequencePtr> backlog_;               // without a place, in order
  size_t waiting_ = 0;
  uint64_t tickets_ = 0;
  int64_t first_deadline_ns_ = kNoDeadline;  // no waiting request has an earlier time
};

// Every sequence has a row of its own for as long as it lives; a batch has all rows up to the last one that is taken.
class DirectSequencePolicy final : public SequencePolicy {
 public:
  struct DirectOptions {
    double minimum_utilization = 0;  // the part of the rows that need a request, unless one waits for max_delay_ns
    bool keeps_rows = true;          // false: rows without a request are left out
  };
  // `options.places` becomes `options.rows`.
  DirectSequencePolicy(Options options, DirectOptions direct);

 protected:
  void pick(size_t instance, int64_t now_ns, SequenceBatch& batch) override;

 private:
  const DirectOptions direct_;
};

// A batch has the requests that came first, at most one of each sequence.
class OldestSequencePolicy final : public SequencePolicy {
 public:
  struct OldestOptions {
    std::vector<int64_t> preferred_sizes;
    bool preserves_ordering = false;  // no request runs before one that came earlier
  };
  OldestSequencePolicy(Options options, OldestOptions oldest);

 protected:
  void pick(size_t instance, int64_t now_ns, SequenceBatch& batch) override;

 private:
  size_t batch_size(size_t ready, int64_t waited_ns) const;
  const OldestOptions oldest_;
};

}  // namespace tensord::server
