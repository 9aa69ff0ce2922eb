#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "server/scheduler/policy.h"

namespace tensord::server {

// How tasks of one priority wait.
struct QueueRules {
  size_t max_size = 1024;
  uint64_t timeout_us = 0;      // of waiting; 0: none
  bool allows_timeout = false;  // a task may say a shorter one
  bool delays_late = false;     // a task that waited for too long runs after all of its priority that did not
};

struct BatchRules {
  int64_t max_rows = 1;                 // of a batch; 1: one task at a time
  std::vector<int64_t> preferred_rows;  // a batch that has one of these runs at once
  int64_t max_delay_ns = 0;             // how long a task waits for others to share a batch with
  bool keeps_order = false;             // of arrival, within a priority; else by deadline
  uint64_t priority_levels = 1;         // 1 is the highest
  uint64_t default_priority = 1;
  QueueRules queue = {};                           // of a level
  std::map<uint64_t, QueueRules> own_queues = {};  // of levels that have rules of their own
};

// Tasks wait in order of priority, then of what is due first, and share batches with others of an equal batch_key:
//   ready   a batch of a preferred size, one that cannot come to one any more, a full one, one whose first tasks have
//           waited for max_delay_ns, or one that waited when a task of another key came
//   next    of what is ready, the batch with the first task; it takes tasks in order and leaves none out
// A task is due at its deadline, but at the latest kPatienceNs after it came, so that those without a deadline come
// to their turn. One with a deadline waits for others for at most half of the time it has.
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
    bool is_late = false;  // only where the late are delayed
    int64_t due_ns = 0;
    uint64_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Group {
    std::map<Place, TaskPtr> tasks;
    int64_t rows = 0;
    int64_t hold_ns = kNoDeadline;  // until when next() said that it waits for more; kNoDeadline: not asked
    uint64_t pushed_before = 0;     // tasks of lower numbers wait for nothing any more: one of another key came
  };
  using Groups = std::map<std::vector<int64_t>, Group>;
  struct Choice {
    size_t count = 0;  // tasks that are ready; 0: none before wake_ns
    int64_t wake_ns = kNoDeadline;
  };

  const QueueRules& queue(uint64_t priority) const;
  uint64_t priority_of(const Task& task) const;
  int64_t late_ns(const Task& task, uint64_t priority) const;
  int64_t hold_until(const Task& task) const;
  // When something happens to a task in its place: it expires or becomes late.
  int64_t event_ns(const Task& task, const Place& place) const;
  void insert(Groups::iterator group, const Place& place, TaskPtr task);
  TaskPtr remove(Groups::iterator group, std::map<Place, TaskPtr>::iterator position);
  void drop_if_empty(Groups::iterator group);
  bool push_others(Groups::iterator group, uint64_t number);
  void expire(int64_t now_ns, Batch& batch);
  void drop_cancelled(Groups::iterator group, int64_t max_rows, Batch& batch);
  Choice choose(const Group& group, const Place* end, int64_t now_ns) const;

  const BatchRules rules_;
  const int64_t largest_rows_;               // that a batch is waited for
  Groups groups_;                            // none is empty
  std::optional<Groups::iterator> open_;     // of the last task, while it waits; all others are pushed
  std::map<Place, Groups::iterator> heads_;  // the first place of each group
  std::map<std::pair<int64_t, uint64_t>, std::pair<Groups::iterator, Place>> events_;
  std::map<uint64_t, size_t> sizes_;  // waiting, by priority; none is 0
  size_t size_ = 0;
  uint64_t count_ = 0;  // tasks that ever came
};

}  // namespace tensord::server
