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

// What a communication hook gets: a bucket's gradients of this rank, not divided yet.
struct GradBucket {
  Tensor flat;
  size_t index;  // in the order of sending
  bool is_last;
  std::vector<Tensor> views;  // each parameter's part of `flat`, with its shape
};
// Starts to reduce a bucket, and gives what waits for the end: it leaves the mean over all ranks in `flat`. Called in
// the same order on all ranks.
using CommHook = std::function<std::function<void()>(ProcessGroup& group, const GradBucket& bucket)>;

// Gradients travel as float16 or bfloat16: cast, divided, added, cast back.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();

struct ReducerOptions {
  // 0: 1 MiB for the bucket that is sent first, 25 MiB for the others. Else for all.
  size_t bucket_cap_bytes = 0;
  // Parameters that an output does not hang on count as ready; without it, a pass that does not reach all is an error.
  bool find_unused_parameters = false;
  // The first pass shows which parameters are used, and how often their gradients come in a pass (twice where a part of
  // the forward is run again in backward); all later passes are the same, or an error. Nothing is looked for, then.
  bool static_graph = false;
  bool gradient_as_bucket_view = false;  // gradients lie in the buckets
  bool init_sync = true;  // false: ranks have the same parameters and buffers, nothing is sent at the start
  CommHook hook = {};     // empty: multiply by 1/W, sum
  // Names of parameters whose gradients are sparse, rows of tables (embedding's `sparse`): of these the rows that some
  // rank has are gathered and added, whatever the hook.
  std::vector<std::string> sparse = {};
};

struct NamedParameter {
  std::string name;
  Tensor tensor;
};

// The heart of data-parallel training, PyTorch's DDP: after a backward pass every parameter's gradient is the mean of
// all ranks' gradients. Hooks on the parameters' accumulators put gradients into buckets; a bucket is sent when its
// last one has come, while the pass goes on, always in the same order; the pass ends when all are back.
//
// The first pass has one bucket, so that no order can be wrong; then buckets are made anew in the order in which rank
// 0's gradients came. Gradients are multiplied by 1/W before the sum.
//
// Thread-safety: one thread trains; passes may have threads of their own.
class Reducer {
 public:
  // All ranks call it. Compares names, sizes, strides and dtypes of all ranks (one Error on all of them), then gives
  // every rank rank 0's parameters and buffers (init_sync). The group must outlive it.
  Reducer(ProcessGroup& group, std::vector<NamedParameter> parameters, std::vector<NamedParameter> buffers,
          ReducerOptions options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // After a forward whose backward shall reduce; `outputs` are looked at for parameters that are not used. Gradients
  // are divided by `divisor`, 0: the number of ranks. Throws Error{kFailedPrecondition} with PyTorch's text where the
  // pass before has not reduced all.
  void prepare(std::span<const Tensor> outputs = {}, int divisor = 0);
  // Until the next prepare(), passes add to this rank's gradients only.
  void skip();
  // Takes part in a pass of the others with gradients of zeros. This rank's own stay as they are, or are what all have.
  void shadow_pass(int divisor = 0, bool takes_result = false);
  // Gives every rank the root's buffers, or parameters.
  void broadcast_buffers(int root = 0);
  void broadcast_parameters(int root);

  // In the place of none; between passes, on all ranks. Throws Error{kFailedPrecondition} where there is one.
  void register_hook(CommHook hook);

  bool has(const Tensor& parameter) const;
  BucketPlan buckets() const;
  ProcessGroup& group() const { return group_; }
  // All passes' time in which they only waited for other ranks.
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
  std::vector<std::function<void()>> waits_ TENSORD_GUARDED_BY(mutex_);  // of the buckets that were sent
  std::vector<bool> is_ready_ TENSORD_GUARDED_BY(mutex_), is_used_
      TENSORD_GUARDED_BY(mutex_);  // by parameter, in this pass; is_used_: on this rank
  std::vector<bool> is_used_by_anyone_ TENSORD_GUARDED_BY(mutex_);  // by parameter, in the pass that ended last
  std::vector<size_t> order_ TENSORD_GUARDED_BY(mutex_);            // in which gradients came
  std::vector<int> uses_ TENSORD_GUARDED_BY(mutex_), uses_left_
      TENSORD_GUARDED_BY(mutex_);                          // by parameter, of a static graph: gradients in a pass
  bool is_recorded_ TENSORD_GUARDED_BY(mutex_) = false;    // uses_ are known
  int divisor_ TENSORD_GUARDED_BY(mutex_) = 1;             // of this pass
  bool reduces_ TENSORD_GUARDED_BY(mutex_) = false;        // passes reduce
  bool is_unfinished_ TENSORD_GUARDED_BY(mutex_) = false;  // a pass has begun, and not reduced all
  bool is_ordered_ TENSORD_GUARDED_BY(mutex_) = false;     // buckets are in the order of gradients, or stay as they are
  std::chrono::nanoseconds waited_ TENSORD_GUARDED_BY(mutex_){0};
};

}  // namespace tensord::distributed
