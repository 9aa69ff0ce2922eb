#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/shared_cache.h"
#include "core/ops/attributes/packed.h"
#include "kernels/base/epilogue_step.h"
#include "kernels/onednn/onednn.h"

namespace tensord::kernels {

// A oneDNN primitive with its weights and bias, ready to be called with source and destination
// memory. Any number of threads may run it at once.
class PackedPlan {
 public:
  // Weights and bias lie in the tensors as the descriptors say; an undefined bias is none.
  PackedPlan(dnnl::primitive primitive, const MemoryDesc& src, const MemoryDesc& dst, const MemoryDesc& scratchpad,
             std::pair<MemoryDesc, Tensor> weights, std::pair<MemoryDesc, Tensor> bias);
  ~PackedPlan();
  void run(const void* src, void* dst) const;
  // The same in the caller's scratch memory, scratch_bytes() of it, aligned to 64.
  void run(const void* src, void* dst, void* scratch) const;
  size_t scratch_bytes() const { return scratchpad_.get_size(); }

 private:
  // oneDNN's handles to the memory of one call; kept for the next. As many are kept as threads run the plan at
  // once; beyond that many they are made anew.
  struct Call;
  static constexpr size_t kIdleCalls = 8;
  std::unique_ptr<Call> make_call() const;
  std::unique_ptr<Call> take_call() const;
  void give_call(std::unique_ptr<Call> call) const;

  dnnl::primitive primitive_;
  MemoryDesc src_, dst_, scratchpad_;
  std::pair<MemoryDesc, Tensor> weights_, bias_;
  mutable std::array<std::atomic<Call*>, kIdleCalls> idle_{};
};

// What a plan was made for. Primitives are cut for a number of threads when they are made.
struct PlanKey {
  Dims sizes;
  int layout = 0;
  int threads = 1;
  bool operator<(const PlanKey& other) const {
    if (layout != other.layout) return layout < other.layout;
    if (threads != other.threads) return threads < other.threads;
    return std::ranges::lexicographical_compare(sizes, other.sizes);
  }
};
inline constexpr size_t kMaxPlans = 16;  // kept of one packed operator

// The weight in the order that a primitive asked for, kept in `store` when that is not null. `describe` gives the
// descriptor of a tensor of the weight's sizes; dimension 0 is multiplied by `scale` when that is defined.
Tensor onednn_weight(ops::PackStore* store, const MemoryDesc& packed, const Tensor& weight, const Tensor& scale,
                     const std::function<MemoryDesc(const Tensor&)>& describe);

// The scale, bias and post-ops that joined calls come down to.
struct Epilogues {
  Tensor scale, bias;  // f32 per output channel, or undefined
  bool has_add = false;
  std::vector<EpilogueStep> steps;  // elementwise, in order, after the sum

  // False, and nothing changed, when `next` cannot come after what is there.
  bool join(const ops::Epilogue& next, int64_t channels);
  // Of the first steps, how many oneDNN can do: its bounds, and on old processors its sigmoid, make a number of a NaN,
  // so none is left to it from the first of these on.
  size_t onednn_steps() const;
  // Attributes of a primitive with those; the sum adds to what the destination holds.
  dnnl::primitive_attr attributes() const;
};

}  // namespace tensord::kernels
