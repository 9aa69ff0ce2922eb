#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// An operator as the epilogue of a packed one. Independent of the device: the packed operator decides whether it can
// fuse it.
struct Epilogue {
  enum class Kind : uint8_t {
    kFormula,        // a function of each element: a line of the tables in kernels/pointwise, and its scalar arguments
    kChannelAffine,  // x * scale[c] + shift[c], c along dimension 1
    kAdd,            // x + another tensor of the same shape
  };
  Kind kind = Kind::kFormula;
  std::string_view formula = {};  // its name, "leaky_relu"; static text
  std::array<double, 3> numbers = {};
  Tensor scale = {}, shift = {};  // kChannelAffine: f32, one entry per channel
};

// An operator's attribute: the epilogue that it can become. Gets the arguments with None for tensors that are known
// only at each call; returns nothing if these arguments do not allow it.
struct EpilogueMaker {
  std::function<std::optional<Epilogue>(std::span<const Value> arguments)> says;
};

// A call whose arguments are known except for one or two.
struct BoundCall {
  const Op* op = nullptr;
  std::vector<Value> arguments;  // None in place of a tensor that each call passes
  int input = 0;                 // the argument that takes the running value
  int other = -1;                // the argument that takes the second tensor, or -1
  // Set if the call was the in-place variant of `op` on the running value: it keeps dtype and shape.
  const Op* in_place = nullptr;
  uint32_t widened = 0;  // bit i: argument i is a constant of float16 or bfloat16, and float32 in the call
};

// The arguments of an operator's `pack`.
struct PackArgs {
  const Op& op;
  std::span<const Value> arguments;  // None for a tensor that each call passes, such as argument 0
  Precision precision = Precision::kF32;
  std::shared_ptr<PackStore> store;  // holds what is made of the weights; never null
  uint32_t widened = 0;              // bit i: argument i is given as float16 or bfloat16, and is float32 in the call
};

// An operator with its weights bound and packed, and the epilogues fused to it: a chain of calls done as one. Passes
// build it while a model loads; then it is constant and shared by all workers, and only caches inside of it change
// (thread-safe). Made by an Op's `pack`. Its weights in the order of its kernels are in the store, shared with others
// made of the same tensors.
class PackedOp : public OpaqueObject {
 public:
  // The call of `args`, with the running value as argument `input`.
  PackedOp(const PackArgs& args, int input)
      : calls_{BoundCall{&args.op, {args.arguments.begin(), args.arguments.end()}, input, -1, nullptr, args.widened}},
        store_(args.store) {}

  const std::vector<BoundCall>& calls() const { return calls_; }
  // Whether run takes a second tensor.
  bool has_other() const;
  std::string class_name() const override;

  // A packed operator that also does `call`, whose meaning is `epilogue`; null if it cannot.
  virtual IntrusivePtr<PackedOp> with(const BoundCall& call, const Epilogue& epilogue) const = 0;
  // A variant with results in channels_last where that is possible; null if there is none.
  virtual IntrusivePtr<PackedOp> with_channels_last() const = 0;
  virtual bool is_channels_last() const = 0;

  // The call for one shape, or null. `other` is undefined if run takes one tensor; the prepared call then takes one
  // input. See PrepareArgs for the rest; args.arguments[0] is this object.
  virtual std::unique_ptr<PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                                const PrepareArgs& args) const {
    (void)input, (void)other, (void)args;
    return nullptr;
  }

  // Computes the result. With `can_overwrite`, `other` may be written and returned. Meta tensors give meta tensors.
  // Cases that the prepared call does not cover (another dtype, a device, a broadcast) are done by the parent and the
  // last call on its own, down to plain calls, with the same results and errors.
  Tensor run(const Tensor& input, const Tensor& other, bool can_overwrite) const;

  // The same by the prepared call alone; empty if it does not cover these tensors.
  virtual std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool can_overwrite) const = 0;

 protected:
  // Runs calls()[first…] one by one.
  Tensor run_calls(size_t first, const Tensor& input, const Tensor& other) const;
  // Makes this operator do `parent` followed by `call`. For `with`.
  void extend(const PackedOp& parent, BoundCall call);
  PackedOp(const PackedOp& other) : calls_(other.calls_), store_(other.store_), parent_(other.parent_) {}
  const std::shared_ptr<PackStore>& store() const { return store_; }

 private:
  std::vector<BoundCall> calls_;
  std::shared_ptr<PackStore> store_;
  IntrusivePtr<const PackedOp> parent_;  // does all calls except the last
};

// The operators that run a packed operator: (packed, input) and (packed, input, other).
inline constexpr const char* kRunPacked = "tensord::packed";
inline constexpr const char* kRunPackedWithOther = "tensord::packed.other";
TypePtr packed_type();

}  // namespace tensord::ops
