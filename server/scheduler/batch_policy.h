#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "server/scheduler/policy.h"

namespace tensord::server {

// The queue of one priority level; Triton's ModelQueuePolicy.
struct QueueRules {
  size_t max_size = 1024;
  uint64_t timeout_us = 0;      // in the queue; 0: none
  bool allows_timeout = false;  // a request may set a shorter one
  bool delays_late = false;     // on timeout: a task runs after all others of its level instead of being rejected
};

struct BatchRules {
  int64_t max_rows = 1;                 // of a batch; 1: no batching
  std::vector<int64_t> preferred_rows;  // a batch of such a size runs at once
  int64_t max_delay_ns = 0;             // how long a task waits for a batch to fill
  bool keeps_order = false;             // arrival order within a level; otherwise earliest deadline first
  uint64_t priority_levels = 1;         // 1 is the highest
  uint64_t default_priority = 1;
  QueueRules queue = {};                           // default of all levels
  std::map<uint64_t, QueueRules> own_queues = {};  // by level
};

// Dynamic batching. Tasks are ordered by priority, then by due time; tasks with equal batch keys form batches.
//   A batch is ready when it has a preferred size, can no longer reach one, is full, when its first task has waited for
//   max_delay_ns, or when a task with another key has arrived after it.
//   Of the ready batches, the one with the first task runs. It takes tasks in order and skips none.
// A task is due at its deadline, at most kPatienceNs after its arrival, so that tasks without a deadline are not
// starved. A task with a deadline waits for a batch to fill for at most half of its remaining time.
class BatchPolicy final : public SchedulingPolicy {
 public:
  static constexpr int64_t kPatienceNs = 1'000'000'000;

  explicit BatchPolicy(BatchRules rules);
  Added add(TaskPtr& task) override;
  Batch next(int64_t now_ns) override;
  Batch sweep(int64_t now_ns, bool looks_for_cancelled) override;
  int64_t next_expiry_ns() const override { return events_.empty() ? kNoDeadline : events_.begin()->first.first; }
  bool runs_alone() const override { return rules_.max_delay_ns == 0; }
  size_t size() const override { return size_; }
  std::vector<TaskPtr> drain() override;

 private:
  struct Place {
    uint64_t priority = 1;
    bool is_late = false;  // only with QueueRules::delays_late
    int64_t due_ns = 0;
    uint64_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Group {
    std::map<Place, TaskPtr> tasks;
    int64_t rows = 0;
    int64_t hold_ns = kNoDeadline;  // the wake time that next() returned for this group; kNoDeadline: none
    uint64_t pushed_before = 0;     // tasks with lower numbers do not wait: a task with another key arrived
  };
  using Groups = std::map<std::vector<int64_t>, Group>;
  struct Choice {
    size_t count = 0;  // ready tasks; 0: none before wake_ns
    int64_t wake_ns = kNoDeadline;
  };

  const QueueRules& queue(uint64_t priority) const;
  uint64_t priority_of(const Task& task) const;
  int64_t late_ns(const Task& task, uint64_t priority) const;
  int64_t hold_until(const Task& task) const;
  // When the task expires or becomes late.
  int64_t event_ns(const Task& task, const Place& place) const;
  void insert(Groups::iterator group, const Place& place, TaskPtr task);
  TaskPtr remove(Groups::iterator group, std::map<Place, TaskPtr>::iterator position);
  void drop_if_empty(Groups::iterator group);
  bool push_others(Groups::iterator group, uint64_t number);
  void expire(int64_t now_ns, Batch& batch);
  void drop_cancelled(Groups::iterator group, int64_t max_rows, Batch& batch);
  Choice choose(const Group& group, const Place* end, int64_t now_ns) const;

  const BatchRules rules_;
  const int64_t largest_rows_;               // the largest preferred size, or max_rows
  Groups groups_;                            // none is empty
  std::optional<Groups::iterator> open_;     // the group of the last task that arrived; all other groups are pushed
  std::map<Place, Groups::iterator> heads_;  // by the first place of each group
  std::map<std::pair<int64_t, uint64_t>, std::pair<Groups::iterator, Place>> events_;
  std::map<uint64_t, size_t> sizes_;  // waiting tasks by level; no entry is 0
  size_t size_ = 0;
  uint64_t count_ = 0;  // tasks added so far
};

}  // namespace tensord::server
