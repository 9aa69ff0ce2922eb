#include "server/scheduler/batch_policy.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Returns `start_ns` + `length_us`, or kNoDeadline on overflow.
int64_t later_by_us(int64_t start_ns, uint64_t length_us) {
  int64_t length_ns = 0, out = 0;
  const bool overflows = __builtin_mul_overflow(length_us, uint64_t{1000}, &length_ns) ||
                         __builtin_add_overflow(start_ns, length_ns, &out);
  return overflows ? kNoDeadline : out;
}

}  // namespace

BatchPolicy::BatchPolicy(BatchRules rules)
    : rules_(std::move(rules)),
      largest_rows_(rules_.preferred_rows.empty() ? rules_.max_rows : std::ranges::max(rules_.preferred_rows)) {
  check_internal(rules_.default_priority >= 1 && rules_.default_priority <= rules_.priority_levels,
                 "a queue whose default priority is none");
}

const QueueRules& BatchPolicy::queue(uint64_t priority) const {
  const auto own = rules_.own_queues.find(priority);
  return own == rules_.own_queues.end() ? rules_.queue : own->second;
}

uint64_t BatchPolicy::priority_of(const Task& task) const {
  return task.priority >= 1 && task.priority <= rules_.priority_levels ? task.priority : rules_.default_priority;
}

int64_t BatchPolicy::late_ns(const Task& task, uint64_t priority) const {
  const QueueRules& rules = queue(priority);
  uint64_t timeout_us = rules.timeout_us;
  if (rules.allows_timeout && task.timeout_us > 0) {
    timeout_us = timeout_us == 0 ? task.timeout_us : std::min(timeout_us, task.timeout_us);
  }
  return timeout_us == 0 ? kNoDeadline : later_by_us(task.enqueued_ns, timeout_us);
}

int64_t BatchPolicy::hold_until(const Task& task) const {
  int64_t delay_ns = rules_.max_delay_ns;
  if (task.deadline_ns != kNoDeadline) delay_ns = std::min(delay_ns, (task.deadline_ns - task.enqueued_ns) / 2);
  return task.enqueued_ns + delay_ns;
}

int64_t BatchPolicy::event_ns(const Task& task, const Place& place) const {
  return place.is_late ? task.deadline_ns : std::min(task.deadline_ns, late_ns(task, place.priority));
}

void BatchPolicy::insert(Groups::iterator group, const Place& place, TaskPtr task) {
  const int64_t event = event_ns(*task, place);
  if (event != kNoDeadline) events_[{event, place.number}] = {group, place};
  auto& tasks = group->second.tasks;
  if (tasks.empty() || place < tasks.begin()->first) {
    if (!tasks.empty()) heads_.erase(tasks.begin()->first);
    heads_[place] = group;
  }
  group->second.rows += task->rows;
  tasks.emplace(place, std::move(task));
  ++sizes_[place.priority];
  ++size_;
}

TaskPtr BatchPolicy::remove(Groups::iterator group, std::map<Place, TaskPtr>::iterator position) {
  const Place place = position->first;
  TaskPtr task = std::move(position->second);
  auto& tasks = group->second.tasks;
  const bool was_first = position == tasks.begin();
  tasks.erase(position);
  if (was_first) {
    heads_.erase(place);
    if (!tasks.empty()) heads_[tasks.begin()->first] = group;
  }
  const int64_t event = event_ns(*task, place);
  if (event != kNoDeadline) events_.erase({event, place.number});
  group->second.rows -= task->rows;
  group->second.hold_ns = kNoDeadline;
  if (const auto size = sizes_.find(place.priority); --size->second == 0) sizes_.erase(size);
  --size_;
  return task;
}

void BatchPolicy::drop_if_empty(Groups::iterator group) {
  if (!group->second.tasks.empty()) return;
  if (open_ == group) open_.reset();
  groups_.erase(group);
}

// A task arrived in this group, so a batch of another group that waits for more of its kind runs now. Returns true if
// there is one.
bool BatchPolicy::push_others(Groups::iterator group, uint64_t number) {
  if (open_ == group) return false;
  const bool pushes = open_.has_value();
  if (pushes) (*open_)->second.pushed_before = number;
  open_ = group;
  return pushes;
}

SchedulingPolicy::Added BatchPolicy::add(TaskPtr& task) {
  const uint64_t priority = priority_of(*task);
  const auto waiting = sizes_.find(priority);
  if ((waiting == sizes_.end() ? 0 : waiting->second) >= queue(priority).max_size) return Added::kRefused;
  Place place{.priority = priority, .due_ns = task->enqueued_ns, .number = count_++};
  if (!rules_.keeps_order) place.due_ns = std::min(task->deadline_ns, task->enqueued_ns + kPatienceNs);

  const auto group = groups_.try_emplace(rules_.max_rows > 1 ? task->batch_key : std::vector<int64_t>()).first;
  const int64_t hold_ns = hold_until(*task);
  insert(group, place, std::move(task));
  const bool pushes = rules_.max_delay_ns > 0 && push_others(group, place.number);
  const int64_t enough = rules_.preferred_rows.empty()
                             ? rules_.max_rows
                             : *std::min_element(rules_.preferred_rows.begin(), rules_.preferred_rows.end());
  const bool is_ready = rules_.max_delay_ns == 0 || pushes || group->second.rows >= enough ||
                        hold_ns < group->second.hold_ns || (rules_.keeps_order && groups_.size() > 1);
  return is_ready ? Added::kIsReady : Added::kWaits;
}

void BatchPolicy::expire(int64_t now_ns, Batch& batch) {
  while (next_expiry_ns() <= now_ns) {
    const auto [group, place] = events_.begin()->second;
    TaskPtr task = remove(group, group->second.tasks.find(place));
    if (now_ns < task->deadline_ns && !place.is_late && queue(place.priority).delays_late) {
      Place late = place;
      late.is_late = true;
      insert(group, late, std::move(task));
    } else {
      batch.expired.push_back(std::move(task));
      drop_if_empty(group);
    }
  }
}

void BatchPolicy::drop_cancelled(Groups::iterator group, int64_t max_rows, Batch& batch) {
  auto& tasks = group->second.tasks;
  int64_t rows = 0;
  for (auto at = tasks.begin(); at != tasks.end() && rows < max_rows;) {
    const auto here = at++;
    if (here->second->is_cancelled()) {
      batch.cancelled.push_back(remove(group, here));
    } else {
      rows += here->second->rows;
    }
  }
}

// Chooses how many of the group's first tasks, all before `end`, to run now.
BatchPolicy::Choice BatchPolicy::choose(const Group& group, const Place* end, int64_t now_ns) const {
  const auto& preferred = rules_.preferred_rows;
  Choice choice;
  size_t count = 0, preferred_count = 0;
  int64_t rows = 0;
  bool is_full = false;
  for (const auto& [place, task] : group.tasks) {
    is_full = count > 0 && (rows + task->rows > rules_.max_rows || (end != nullptr && *end < place));
    if (is_full) break;
    const bool passes_all =
        count > 0 && preferred_count == 0 && rows < largest_rows_ && rows + task->rows > largest_rows_;
    if (passes_all && now_ns < choice.wake_ns) preferred_count = count;
    rows += task->rows;
    ++count;
    if (std::find(preferred.begin(), preferred.end(), rows) != preferred.end()) preferred_count = count;
    const bool is_pushed = place.number < group.pushed_before;
    choice.wake_ns = std::min(choice.wake_ns, is_pushed ? now_ns : hold_until(*task));
  }
  // Tasks behind `end` cannot join.
  is_full = is_full || rows >= largest_rows_ || end != nullptr;
  if (preferred_count > 0) {
    choice.count = preferred_count;
  } else if (is_full || now_ns >= choice.wake_ns) {
    choice.count = count;
  }
  return choice;
}

Batch BatchPolicy::next(int64_t now_ns) {
  Batch batch;
  expire(now_ns, batch);
  for (auto at = heads_.begin(); at != heads_.end();) {
    const Groups::iterator group = at->second;
    const size_t cancelled = batch.cancelled.size();
    drop_cancelled(group, rules_.max_rows, batch);
    if (batch.cancelled.size() != cancelled) {
      // The heads have changed, so start over.
      drop_if_empty(group);
      at = heads_.begin();
      batch.wake_ns = kNoDeadline;
      continue;
    }
    const auto following = std::next(at);
    const Place* end = rules_.keeps_order && following != heads_.end() ? &following->first : nullptr;
    const Choice choice = choose(group->second, end, now_ns);
    group->second.hold_ns = choice.wake_ns;
    for (size_t i = 0; i < choice.count; ++i) {
      batch.tasks.push_back(remove(group, group->second.tasks.begin()));
    }
    if (choice.count > 0) {
      drop_if_empty(group);
      break;
    }
    batch.wake_ns = std::min(batch.wake_ns, choice.wake_ns);
    if (rules_.keeps_order) break;
    at = following;
  }
  return batch;
}

Batch BatchPolicy::sweep(int64_t now_ns, bool looks_for_cancelled) {
  Batch batch;
  expire(now_ns, batch);
  if (!looks_for_cancelled) return batch;
  for (auto at = groups_.begin(); at != groups_.end();) {
    const auto group = at++;
    drop_cancelled(group, kNoDeadline, batch);
    drop_if_empty(group);
  }
  return batch;
}

std::vector<TaskPtr> BatchPolicy::drain() {
  std::vector<TaskPtr> out;
  while (!heads_.empty()) {
    const Groups::iterator group = heads_.begin()->second;
    out.push_back(remove(group, group->second.tasks.begin()));
    drop_if_empty(group);
  }
  return out;
}

}  // namespace tensord::server
