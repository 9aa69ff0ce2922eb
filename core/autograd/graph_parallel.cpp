#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <functional>

#include "core/autograd/graph_task.h"
#include "core/base/execution_context.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::autograd {
namespace {

// Threads that help with passes. They are started when first needed and kept; idle ones wait.
class HelperPool {
 public:
  static HelperPool& instance() {
    static HelperPool pool;
    return pool;
  }
  ~HelperPool() {
    close();
    wake_.notify_all();
    for (Thread& thread : threads_) thread.join();
  }
  // Calls `work` once on another thread.
  void submit(std::function<void()> work) {
    const MutexLock lock(mutex_);
    // Starts the thread before queueing: work that no thread can run must not stay in the queue, since its pass ends
    // without it.
    if (idle_ < queue_.size() + 1) threads_.emplace_back("autograd", [this] { loop(); });
    queue_.push_back(std::move(work));
    wake_.notify_one();
  }

 private:
  // Not in the destructor, which clang's thread safety analysis does not check.
  void close() {
    const MutexLock lock(mutex_);
    is_closing_ = true;
  }

  void loop() {
    MutexLock lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_closing_ || !queue_.empty(); });
      --idle_;
      if (queue_.empty()) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      run_logged("autograd", work);
      lock.lock();
    }
  }

  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ TENSORD_GUARDED_BY(mutex_);
  std::vector<Thread> threads_ TENSORD_GUARDED_BY(mutex_);
  size_t idle_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_closing_ TENSORD_GUARDED_BY(mutex_) = false;
};

}  // namespace

// A pass on several threads. Each takes the ready node with the highest sequence number. Gradients for one place are
// added in the order of the nodes that they come from, as in a serial pass: an early one waits for those before it.
class ParallelPass {
 public:
  explicit ParallelPass(GraphTask& graph) : graph_(graph), ready_(graph.ready_at_start()) { rank_edges(); }

  void run(int threads) {
    ExecutionContext context = ExecutionContext::captured();
    context.threads = std::max(1, context.threads / threads);
    for (int i = 1; i < threads; ++i) call_helper(context);
    {
      const ExecutionScope scope(context);
      work();
    }
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return active_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // Collects the gradients for one result of one node.
  struct Inbox {
    uint32_t expected = 0;  // rank of the next one to add
    std::vector<std::pair<uint32_t, Tensor>> early;
  };

  void call_helper(const ExecutionContext& context) {
    const auto help = [this, &context] {
      {
        const ExecutionScope scope(context);
        work();
      }
      const MutexLock lock(mutex_);
      if (--active_ == 0) changed_.notify_all();
    };
    const MutexLock lock(mutex_);
    try {
      HelperPool::instance().submit(help);
      ++active_;
    } catch (const std::exception&) {
      // No thread could be started: the running ones do the work.
    }
  }

  void rank_edges() {
    std::vector<NodeTask*> by_age;
    for (NodeTask& task : graph_.tasks_) by_age.push_back(&task);
    std::sort(by_age.begin(), by_age.end(), [](const NodeTask* a, const NodeTask* b) { return is_earlier(b, a); });
    uint32_t inboxes = 0;
    for (NodeTask* task : by_age) {
      task->first_inbox = inboxes;
      inboxes += static_cast<uint32_t>(task->node->results().size());
    }
    inboxes_.resize(inboxes);
    std::vector<uint32_t> given(inboxes, 0);
    ranks_.resize(graph_.edges_.size());
    for (const NodeTask* task : by_age) {
      const std::span<const Edge> edges = task->node->next_edges();
      for (size_t i = 0; i < edges.size(); ++i) {
        const NodeTask* next = graph_.edges_[task->first_edge + i];
        if (next) ranks_[task->first_edge + i] = given[next->first_inbox + edges[i].input_nr]++;
      }
    }
  }

  void work() {
    MutexLock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return error_ || !ready_.empty() || running_ == 0; });
      if (error_ || ready_.empty()) return;
      std::pop_heap(ready_.begin(), ready_.end(), is_earlier);
      NodeTask* task = ready_.back();
      ready_.pop_back();
      ++running_;
      lock.unlock();
      std::exception_ptr error;
      try {
        run_one(*task);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !error_) error_ = error;
      if (--running_ == 0 || error) changed_.notify_all();
    }
  }

  void run_one(NodeTask& task) {
    std::vector<Tensor> outputs = graph_.run_task(task);
    if (!task.runs) return;
    const std::span<const Edge> edges = task.node->next_edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      NodeTask* next = graph_.edges_[task.first_edge + i];
      if (!next) continue;
      deliver(*next, edges[i].input_nr, ranks_[task.first_edge + i], std::move(outputs[i]));
      if (std::atomic_ref(next->dependencies).fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
      const MutexLock lock(mutex_);
      ready_.push_back(next);
      std::push_heap(ready_.begin(), ready_.end(), is_earlier);
      changed_.notify_one();
    }
  }

  void deliver(NodeTask& task, uint32_t result, uint32_t rank, Tensor gradient) {
    const MutexLock lock(locks_[task.first_inbox % locks_.size()]);
    Inbox& inbox = inboxes_[task.first_inbox + result];
    if (rank != inbox.expected) {
      inbox.early.emplace_back(rank, std::move(gradient));
      return;
    }
    graph_.deliver(task, result, std::move(gradient));
    ++inbox.expected;
    for (size_t i = 0; i < inbox.early.size();) {
      if (inbox.early[i].first != inbox.expected) {
        ++i;
        continue;
      }
      graph_.deliver(task, result, std::move(inbox.early[i].second));
      std::swap(inbox.early[i], inbox.early.back());
      inbox.early.pop_back();
      ++inbox.expected;
      i = 0;
    }
  }

  GraphTask& graph_;
  std::vector<uint32_t> ranks_;  // by edge: its rank among the edges that lead to the same result
  std::vector<Inbox> inboxes_;   // guarded by locks_
  std::array<Mutex, 16> locks_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<NodeTask*> ready_ TENSORD_GUARDED_BY(mutex_);
  int running_ TENSORD_GUARDED_BY(mutex_) = 0, active_ TENSORD_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ TENSORD_GUARDED_BY(mutex_);
};

void GraphTask::run_parallel(int threads) { ParallelPass(*this).run(std::min(threads, 64)); }

}  // namespace tensord::autograd
