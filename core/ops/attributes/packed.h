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

// What an operator does to the value it is given, in terms that a packed operator can do on its
// way out. On any device: whoever joins it says whether it can.
struct Epilogue {
  enum class Kind : uint8_t {
    kFormula,        // a function of each element: a line of the tables in kernels/pointwise, and its numbers
    kChannelAffine,  // x * scale[c] + shift[c], c along dimension 1
    kAdd,            // x + another tensor of the same shape
  };
  Kind kind = Kind::kFormula;
  std::string_view formula = {};  // its name, "leaky_relu"; static text
  std::array<double, 3> numbers = {};
  Tensor scale = {}, shift = {};  // kChannelAffine: f32, one entry per channel
};

// An operator's attribute: what it is after a packed one. Sees the arguments with None where a tensor comes only with
// each call; empty when these arguments do not allow it.
struct EpilogueMaker {
  std::function<std::optional<Epilogue>(std::span<const Value> arguments)> says;
};

// A call whose arguments are known but for one or two.
struct BoundCall {
  const Op* op = nullptr;
  std::vector<Value> arguments;  // None where a tensor of the call goes
  int input = 0;                 // the argument that the running value goes to
  int other = -1;                // the argument that the second tensor goes to, or -1
  // The form of `op` that was called where that writes the running value: it keeps its dtype and shape.
  const Op* in_place = nullptr;
  uint32_t widened = 0;  // bit i: argument i is a constant of halves, and float32 in the call
};

// What an operator's `pack` is told.
struct PackArgs {
  const Op& op;
  std::span<const Value> arguments;  // None where a tensor comes only with each call: argument 0, say
  Precision precision = Precision::kF32;
  std::shared_ptr<PackStore> store;  // where what is made of the weights is kept; never null
  uint32_t widened = 0;              // bit i: argument i is given as halves, and float32 in the call
};

// An operator with its weights bound and prepared, and what was joined to its end: a chain of
// calls done as one. The passes build it while a model loads; then it is constant and shared by
// all workers, and only caches inside of it change (thread-safe). Made by an Op's `pack`. Its weights in the order of
// its kernels are in the store, for all that were made of the same tensors.
class PackedOp : public OpaqueObject {
 public:
  // The call of `args`, whose running value goes to `input`.
  PackedOp(const PackArgs& args, int input)
      : calls_{BoundCall{&args.op, {args.arguments.begin(), args.arguments.end()}, input, -1, nullptr, args.widened}},
        store_(args.store) {}

  const std::vector<BoundCall>& calls() const { return calls_; }
  // Whether run takes a second tensor.
  bool has_other() const;
  std::string class_name() const override;

  // A packed operator that also does `call`, whose meaning is `epilogue`; null when it cannot.
  virtual IntrusivePtr<PackedOp> with(const BoundCall& call, const Epilogue& epilogue) const = 0;
  // One whose results lie channels_last where that is possible; null when it has no such form.
  virtual IntrusivePtr<PackedOp> with_channels_last() const = 0;
  virtual bool is_channels_last() const = 0;

  // The call for one shape, or null. `other` is undefined when run takes one tensor; then and
  // only then the prepared call takes one input. See PrepareArgs for the rest; args.arguments[0]
  // is this object.
  virtual std::unique_ptr<PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                                const PrepareArgs& args) const {
    (void)input, (void)other, (void)args;
    return nullptr;
  }

  // The result. `other` may be written over and returned when `can_overwrite` is set. Meta tensors
  // give meta tensors. What the prepared form does not cover (another dtype, a device, a
  // broadcast) is done by the one it was made from and the last call on its own, down to plain
  // calls, with the same results and errors as the calls.
  Tensor run(const Tensor& input, const Tensor& other, bool can_overwrite) const;

  // The same by the prepared form alone: empty when it does not cover these tensors.
  virtual std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool can_overwrite) const = 0;

 protected:
  // Does calls()[first…] one by one.
  Tensor run_calls(size_t first, const Tensor& input, const Tensor& other) const;
  // This becomes what `parent` and then `call` do. For use by `with`.
  void extend(const PackedOp& parent, BoundCall call);
  PackedOp(const PackedOp& other) : calls_(other.calls_), store_(other.store_), parent_(other.parent_) {}
  const std::shared_ptr<PackStore>& store() const { return store_; }

 private:
  std::vector<BoundCall> calls_;
  std::shared_ptr<PackStore> store_;
  IntrusivePtr<const PackedOp> parent_;  // does all calls but the last
};

// The operators that run a packed operator: (packed, input) and (packed, input, other).
inline constexpr const char* kRunPacked = "tensord::packed";
inline constexpr const char* kRunPackedWithOther = "tensord::packed.other";
TypePtr packed_type();

}  // namespace tensord::ops
