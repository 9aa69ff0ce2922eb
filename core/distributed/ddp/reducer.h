#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/node.h"
#include "core/base/mutex.h"
#include "core/distributed/ddp/buckets.h"
#include "core/distributed/group/process_group.h"
#include "core/tensor/tensor.h"

namespace tensord::distributed {

// The input of a communication hook: this rank's gradients of one bucket, not divided yet.
struct GradBucket {
  Tensor flat;
  size_t index;  // in the order of sending
  bool is_last;
  std::vector<Tensor> views;  // each parameter's part of `flat`, with its shape
};
// Starts to reduce a bucket and returns a function that waits for the end. After that, `flat` holds the mean over all
// ranks. Called in the same order on all ranks.
using CommHook = std::function<std::function<void()>(ProcessGroup& group, const GradBucket& bucket)>;

// Gradients are sent as float16 or bfloat16: cast, divided, summed, cast back.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();

struct ReducerOptions {
  // 0: 1 MiB for the bucket sent first and 25 MiB for the others. Any other value applies to all buckets.
  size_t bucket_cap_bytes = 0;
  // Marks parameters that the output does not depend on as ready. Without it, a pass that does not reach all parameters
  // is an error.
  bool find_unused_parameters = false;
  // The first pass records which parameters are used and how many gradients each one gets in a pass (two if
  // checkpointing reruns part of the forward). All later passes must be the same. Unused parameters are then no longer
  // searched for.
  bool static_graph = false;
  bool gradient_as_bucket_view = false;  // gradients are views of the buckets
  bool init_sync =
      true;  // false: ranks already have the same parameters and buffers, so nothing is broadcast at the start
  CommHook hook = {};  // empty: multiply by 1/W, then sum
  // Names of parameters with sparse gradients (rows of tables: embedding's `sparse`). Their rows are gathered from all
  // ranks and summed; the hook is not called.
  std::vector<std::string> sparse = {};
};

struct NamedParameter {
  std::string name;
  Tensor tensor;
};

// The core of data-parallel training, PyTorch's DDP: after a backward pass every parameter's gradient is the mean over
// all ranks. Hooks on the parameters' gradient accumulators fill buckets. A bucket is sent when its last gradient has
// arrived, while the backward pass continues, always in the same order. The pass ends when all buckets are reduced.
//
// The first pass uses one bucket, so that no order can be wrong. Buckets are then rebuilt in the order in which rank
// 0's gradients arrived. Gradients are multiplied by 1/W before the sum.
//
// Thread-safety: one thread trains; backward passes may use threads of their own.
class Reducer {
 public:
  // All ranks call it. It compares the names, sizes, strides and dtypes of all ranks (all of them throw the same
  // Error), then broadcasts rank 0's parameters and buffers (init_sync). The group must outlive it.
  Reducer(ProcessGroup& group, std::vector<NamedParameter> parameters, std::vector<NamedParameter> buffers,
          ReducerOptions options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Call it after a forward whose backward is to be reduced. `outputs` are searched for unused parameters. Gradients
  // are divided by `divisor`; 0 is the number of ranks. Throws Error{kFailedPrecondition} with PyTorch's message if the
  // previous pass has not reduced all gradients.
  void prepare(std::span<const Tensor> outputs = {}, int divisor = 0);
  // Until the next prepare(), passes only accumulate this rank's gradients (no_sync).
  void skip();
  // Joins a pass of the other ranks with zero gradients. This rank's own gradients stay unchanged, or with
  // `takes_result` become the reduced ones.
  void shadow_pass(int divisor = 0, bool takes_result = false);
  // Copies the root's buffers (or parameters) to every rank.
  void broadcast_buffers(int root = 0);
  void broadcast_parameters(int root);

  // Call it between passes, on all ranks. Throws Error{kFailedPrecondition} if there is already a hook.
  void register_hook(CommHook hook);

  bool has(const Tensor& parameter) const;
  BucketPlan buckets() const;
  ProcessGroup& group() const { return group_; }
  // Total time that passes only waited for other ranks.
  std::chrono::nanoseconds waited() const {
    const MutexLock lock(mutex_);
    return waited_;
  }

 private:
  struct Place {
    size_t bucket, position;
  };
  void check_alike();
  void broadcast(std::span<const NamedParameter> tensors, int root);
  void start_pass(int divisor) TENSORD_REQUIRES(mutex_);
  void make_buckets(BucketPlan plan) TENSORD_REQUIRES(mutex_);
  std::vector<size_t> dense_of(std::span<const size_t> order) const;
  void check_parameters();
  void take_sparse(Bucket& bucket, size_t index) TENSORD_REQUIRES(mutex_);
  void on_gradient(size_t index);
  void take(size_t index) TENSORD_REQUIRES(mutex_);
  void send_ready() TENSORD_REQUIRES(mutex_);
  std::function<void()> send(Bucket& bucket, size_t index) TENSORD_REQUIRES(mutex_);
  void finish_pass();
  void wait_for_buckets() TENSORD_REQUIRES(mutex_);
  void put_back(size_t index, bool is_used) TENSORD_REQUIRES(mutex_);
  std::vector<bool> used_by_anyone() TENSORD_REQUIRES(mutex_);
  void order_buckets_anew() TENSORD_REQUIRES(mutex_);
  bool is_recording() const TENSORD_REQUIRES(mutex_) { return options_.static_graph && !is_recorded_; }
  bool counts_down(size_t index) TENSORD_REQUIRES(mutex_);
  void send_recorded();
  std::vector<bool> reached_from(std::span<const Tensor> outputs) const;
  [[noreturn]] void fail_unfinished() const TENSORD_REQUIRES(mutex_);

  ProcessGroup& group_;
  const std::vector<NamedParameter> named_;
  const std::vector<NamedParameter> buffers_;
  ReducerOptions options_;
  std::vector<Tensor> parameters_;
  std::vector<bool> is_sparse_;  // by parameter
  std::vector<autograd::NodePtr> accumulators_;
  std::vector<autograd::HookHandle> hooks_;

  mutable Mutex mutex_;  // hooks run on several threads
  std::vector<Bucket> buckets_ TENSORD_GUARDED_BY(mutex_);
  std::vector<Place> places_ TENSORD_GUARDED_BY(mutex_);                 // by parameter
  std::vector<std::function<void()>> waits_ TENSORD_GUARDED_BY(mutex_);  // of the buckets sent so far
  std::vector<bool> is_ready_ TENSORD_GUARDED_BY(mutex_), is_used_
      TENSORD_GUARDED_BY(mutex_);  // by parameter, in this pass; is_used_: on this rank
  std::vector<bool> is_used_by_anyone_ TENSORD_GUARDED_BY(mutex_);  // by parameter, in the last finished pass
  std::vector<size_t> order_ TENSORD_GUARDED_BY(mutex_);            // in which gradients arrived
  std::vector<int> uses_ TENSORD_GUARDED_BY(mutex_), uses_left_
      TENSORD_GUARDED_BY(mutex_);                          // by parameter, with a static graph: gradients in one pass
  bool is_recorded_ TENSORD_GUARDED_BY(mutex_) = false;    // uses_ is known
  int divisor_ TENSORD_GUARDED_BY(mutex_) = 1;             // of this pass
  bool reduces_ TENSORD_GUARDED_BY(mutex_) = false;        // passes are reduced
  bool is_unfinished_ TENSORD_GUARDED_BY(mutex_) = false;  // a pass has begun and has not reduced everything
  bool is_ordered_ TENSORD_GUARDED_BY(mutex_) = false;     // buckets follow the order of gradients, or are final
  std::chrono::nanoseconds waited_ TENSORD_GUARDED_BY(mutex_){0};
};

}  // namespace tensord::distributed
