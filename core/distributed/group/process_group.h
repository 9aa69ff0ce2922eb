#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/base/work_thread.h"
#include "core/distributed/group/backend.h"
#include "core/distributed/group/reduce_op.h"
#include "core/distributed/group/work.h"
#include "core/distributed/store/store.h"
#include "core/tensor/tensor.h"

namespace tensord::distributed {

class Packed;

struct GroupOptions {
  Milliseconds timeout = std::chrono::minutes(30);  // of operations without a timeout of their own
  // Before data moves, the ranks' operations are compared: in the first ones, in every n-th, or in all. Operations that
  // are not compared cannot mix data either: ranks that run different operations block, and get an error after `stall`.
  uint64_t checked_first = 16, checked_every = 256;
  bool checks_all = false;
  // An operation that runs for this long (or a third of its timeout, if that is less) publishes its description to the
  // others.
  Milliseconds stall{2000};
  // Ranks use it to prove to each other, on the backend's own connections, that they belong to this job. Empty: no
  // proof.
  std::string secret = {};
};

// The ranks of a job, or a subset, that run the same operations on tensors together; torch.distributed's process group.
// Every call starts an operation and returns its Work. Operations run one at a time, in the order of the calls, which
// must be the same on all ranks. Tensors may have any dtype and strides.
//
// The first error of any rank ends the group on all ranks: running and later operations throw it, with the same message
// everywhere, which names rank, operation and number. Invalid arguments that this rank can detect alone throw at the
// call and do not end the group.
//
// Ranks and roots are relative to the group. Thread-safety: one thread starts operations; any thread may use the works.
class ProcessGroup {
 public:
  static constexpr Milliseconds kGroupsOwn{-1};  // the timeout of the options
  static constexpr int kAnyRank = -1;

  struct Message {
    enum class Way { kSend, kRecv } way;
    Tensor tensor;
    int peer;
    uint32_t tag = 0;
  };

  // All ranks call it, with the same name and options and a store whose keys belong to this group only.
  ProcessGroup(std::shared_ptr<Store> store, std::string name, int rank, int size, BackendFactory backends,
               GroupOptions options = {});
  // Does not wait for other ranks; ranks that still communicate with this one get an error. See close().
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  std::string backend_name() const { return backend_->name(); }
  // Where to create tensors that no operation has used yet: the host, or the backend's device.
  Device device() const;
  Milliseconds timeout() const { return options_.timeout; }
  Store& store() const { return *store_; }

  WorkPtr broadcast(const Tensor& tensor, int root, Milliseconds timeout = kGroupsOwn);
  WorkPtr all_reduce(const Tensor& tensor, ReduceOp op = kSum, Milliseconds timeout = kGroupsOwn);
  // Tensors of one dtype, in one message.
  WorkPtr all_reduce_coalesced(std::vector<Tensor> tensors, ReduceOp op = kSum, Milliseconds timeout = kGroupsOwn);
  // The root's tensor becomes the result; those of other ranks are unchanged.
  WorkPtr reduce(const Tensor& tensor, int root, ReduceOp op = kSum, Milliseconds timeout = kGroupsOwn);
  // outputs[r] becomes rank r's input. Sizes may differ, but each rank knows all of them.
  WorkPtr all_gather(std::vector<Tensor> outputs, const Tensor& input, Milliseconds timeout = kGroupsOwn);
  // `output` has size() times as many elements as `input`, in rank order.
  WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, Milliseconds timeout = kGroupsOwn);
  // The root passes `outputs`; the others pass none.
  WorkPtr gather(std::vector<Tensor> outputs, const Tensor& input, int root, Milliseconds timeout = kGroupsOwn);
  // The root passes `inputs`; the others pass none.
  WorkPtr scatter(const Tensor& output, std::vector<Tensor> inputs, int root, Milliseconds timeout = kGroupsOwn);
  // `output` becomes the sum of all ranks' inputs[rank()].
  WorkPtr reduce_scatter(const Tensor& output, std::vector<Tensor> inputs, ReduceOp op = kSum,
                         Milliseconds timeout = kGroupsOwn);
  WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op = kSum,
                                Milliseconds timeout = kGroupsOwn);
  // outputs[s] becomes rank s's inputs[rank()].
  WorkPtr all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, Milliseconds timeout = kGroupsOwn);
  // The number of rows of the first dimension to and from each rank; empty: equal parts.
  WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, std::span<const int64_t> output_rows = {},
                            std::span<const int64_t> input_rows = {}, Milliseconds timeout = kGroupsOwn);
  WorkPtr barrier(Milliseconds timeout = kGroupsOwn);
  // Uses the store only. Throws Error{kDeadlineExceeded}: on rank 0 it names the first missing rank, or all of them
  // (waits_for_all); on the others it says that a rank was missing.
  void monitored_barrier(Milliseconds timeout = kGroupsOwn, bool waits_for_all = false);

  // Messages between two ranks with one tag arrive in order. A recv whose dtype or number of elements differs from the
  // message is an error on both sides. `source` may be kAnyRank. On a device all messages between two ranks arrive in
  // order, whatever their tags: the tags must match the order, and the source must be known.
  WorkPtr send(const Tensor& tensor, int destination, uint32_t tag = 0, Milliseconds timeout = kGroupsOwn);
  WorkPtr recv(const Tensor& tensor, int source, uint32_t tag = 0, Milliseconds timeout = kGroupsOwn);
  // Starts several messages at once. On a device, messages in a cycle would deadlock if they were started one after the
  // other.
  std::vector<WorkPtr> start_messages(std::vector<Message> messages, Milliseconds timeout = kGroupsOwn);

  // Byte strings of any size, for objects. These calls block.
  std::vector<std::string> all_gather_bytes(const std::string& bytes, Milliseconds timeout = kGroupsOwn);
  std::string broadcast_bytes(const std::string& bytes, int root, Milliseconds timeout = kGroupsOwn);
  // Empty on all ranks but the root.
  std::vector<std::string> gather_bytes(const std::string& bytes, int root, Milliseconds timeout = kGroupsOwn);
  std::string scatter_bytes(std::span<const std::string> bytes, int root, Milliseconds timeout = kGroupsOwn);

  // Creates a group of these ranks of this group, in this order. All ranks of this group call it, in the same order;
  // ranks that are not members get null. `timeout` is the default of its operations, by default this group's.
  std::unique_ptr<ProcessGroup> new_group(std::span<const int> ranks, Milliseconds timeout = kGroupsOwn);

  // Ends the group on all ranks: running and later operations throw `reason`.
  void abort(const std::string& reason);
  std::optional<Error> failure() const;
  // Waits until all ranks have called close() or the timeout has passed, so that no rank's last operation is cut off.
  // The process that serves the store leaves last. Never throws. An aborted group closes at once.
  void close(Milliseconds timeout = std::chrono::seconds(10), bool serves_store = false) noexcept;

 private:
  struct Item;
  // A description of an operation for the other ranks. `agreed` is the same string on all ranks if they run the same
  // operation.
  struct Fingerprint {
    std::string operation, agreed;
    Device device = {};  // of the result; not part of `agreed`, because ranks may use different devices
  };
  using Body = std::function<void(const BackendCall&)>;

  WorkPtr enqueue(Fingerprint fingerprint, Milliseconds timeout, Body body);
  // Returns null if the item was queued, else the error that ended the group.
  std::optional<Error> put(const std::shared_ptr<Item>& item) TENSORD_REQUIRES(mutex_);
  WorkPtr begin(const std::shared_ptr<Item>& item, const std::optional<Error>& failure);
  WorkPtr enqueue_messages(std::vector<Message> messages, Milliseconds timeout);
  void move_messages(DeviceBackend& backend, std::span<const Message> messages, const BackendCall& call);
  void expect_message(const Message& message, SteadyTime deadline);
  void run_queue();
  void run_item(const std::shared_ptr<Item>& item);
  void check_agreement(const Item& item, const BackendCall& call);
  void finish_item(Item& item, const std::optional<Error>& error);
  [[noreturn]] void fail_disagreement(const Item& item, SteadyTime deadline);
  void prove_connections();
  Milliseconds chosen(Milliseconds timeout) const { return timeout.count() < 0 ? options_.timeout : timeout; }
  void check_rank(const std::string& operation, const char* what, int rank) const;
  void pack_for(ReduceOp op, Packed& packed) const;
  void finish_for(ReduceOp op, const Packed& packed) const;
  void exchange(const Packed& source, const std::vector<size_t>& in_bytes, const Packed& target,
                const std::vector<size_t>& out_bytes, const BackendCall& call);
  Elements elements_of(const std::string& operation, ReduceOp op, const Tensor& tensor) const;
  std::string ranks_that_have_not_come(const Item& item);
  WorkPtr failed_transfer(std::string name, const Error& error);
  WorkPtr start_transfer(std::string name, Milliseconds timeout, std::function<int(SteadyTime)> move);

  std::vector<int64_t> gather_sizes(const std::string& bytes, Milliseconds timeout);
  // Exchanges host memory, whatever memory the backend uses. These calls block. Every rank's part has `each` bytes.
  void all_gather_on_host(const std::byte* in, std::byte* out, size_t each, const BackendCall& call);
  void all_to_all_on_host(const std::byte* in, std::byte* out, size_t each, const BackendCall& call);
  void barrier_on_host(const BackendCall& call);
  template <class Fn>
  void by_device(DeviceBackend& backend, const std::byte* in, size_t in_bytes, std::byte* out, size_t out_bytes,
                 const BackendCall& call, const Fn& fn);
  // For device backends: returns when the enqueued work has completed.
  void wait_on_device(DeviceBackend& backend, DeviceStream& stream, SteadyTime deadline);
  void check_open() const;
  void launch(DeviceBackend& backend, const std::shared_ptr<Item>& item, const BackendCall& call);
  void watch_device(DeviceBackend& backend);
  void look_at_launched(DeviceBackend& backend, const std::shared_ptr<Item>& item);

  // The first error of all ranks; this rank's if it is the first.
  Error end_with(const Error& error);
  void wait_for_reason();
  void end_here(const Error& error);
  void watch();
  void look_at_others(Item& item);

  const std::shared_ptr<Store> store_;
  const std::string name_;
  const int rank_, size_;
  const BackendFactory backends_;
  const GroupOptions options_;
  std::unique_ptr<Backend> backend_;
  int groups_made_ = 0, barriers_ = 0;
  std::vector<uint64_t> sent_;      // by peer, guarded by mutex_: number of the last message to it
  std::vector<uint64_t> received_;  // by peer, used by the runner only: number of the last message from it, on a device

  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t last_number_ TENSORD_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Item>> queue_ TENSORD_GUARDED_BY(mutex_);
  std::shared_ptr<Item> current_ TENSORD_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Item>> launched_ TENSORD_GUARDED_BY(mutex_);  // on the device, in order
  std::optional<Error> failure_ TENSORD_GUARDED_BY(mutex_);
  bool is_closing_ TENSORD_GUARDED_BY(mutex_) = false;

  const std::shared_ptr<Store> watched_;  // a separate handle of the store; the destructor interrupts its waits
  std::unique_ptr<WorkThread> transfers_;
  Thread runner_, watcher_, device_watcher_;
};

}  // namespace tensord::distributed
