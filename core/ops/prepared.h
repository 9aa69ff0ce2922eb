#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/shared_cache.h"
#include "core/ops/value.h"
#include "core/tensor/tensor.h"

namespace tensord::ops {

struct KernelContext;
struct Op;

// The cost of a call, for reports: multiplications and additions, and the bytes read and written if every operand is
// touched once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// The memory of one run of a prepared call: pointers to first elements.
struct PreparedRun {
  // One for each tensor among the arguments that was passed as a meta tensor, in order, items of lists in their place.
  const void* const* inputs = nullptr;
  void* const* outputs = nullptr;
  void* scratch = nullptr;  // scratch_bytes, aligned to 64; not kept between runs
};

// A call with known shapes, strides, dtypes and constants: the kernel is chosen, the weights are packed, the work is
// divided. Immutable; any number of threads may run it at once, each with its own memory. A run only computes: it does
// not allocate, look anything up, or work out shapes.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  // May throw Error for invalid data (an index out of range).
  virtual void run(const KernelContext& context, const PreparedRun& memory) const = 0;

  size_t scratch_bytes = 0;
  // Bit i: output 0 may take the memory of input i if nothing reads that later; a run then gets the same pointer for
  // both. Only for inputs with the output's sizes, strides and dtype.
  uint32_t may_overwrite = 0;
  Cost cost;
  std::string label;    // for reports: "linear+gelu"; empty: the operator's name
  std::string variant;  // for reports: which implementation, "brgemm bf16"; may be empty
};

// The type in which a model's large products are computed. Sums are always f32.
enum class Precision : uint8_t {
  kF32,
  kBf16,  // weights and inputs rounded to bfloat16
  kInt8,  // weights rounded to int8 a channel at load, inputs a row at run time
};

// Packed constants of a model, stored so that all signatures and workers share one copy. Thread-safe.
class PackStore {
 public:
  // `what` is made of these tensors (including undefined ones), which are identified by device, memory, shape and
  // strides. They and the result live as long as the store.
  template <class T, class Make>
  std::shared_ptr<const T> get(const std::string& what, std::span<const Tensor> of, Make&& make) {
    const auto entry = entries_.get(key_of(what, of), [&] {
      return std::make_shared<const Entry>(Entry{std::shared_ptr<const T>(make()), {of.begin(), of.end()}});
    });
    return std::static_pointer_cast<const T>(entry->made);
  }

 private:
  struct Entry {
    std::shared_ptr<const void> made;
    std::vector<Tensor> of;  // held, so that no other tensor reuses their addresses
  };
  static std::string key_of(const std::string& what, std::span<const Tensor> of);

  SharedCache<std::string, Entry> entries_{std::numeric_limits<size_t>::max()};
};

// The arguments of an operator's `prepare`.
struct PrepareArgs {
  const Op& op;
  // One value for each schema argument. Tensors that are passed to each run are meta tensors with their strides;
  // constants are the tensors themselves.
  std::span<const Value> arguments;
  std::span<const Tensor> outputs;  // meta: sizes, strides and dtypes to be written
  int threads = 1;                  // threads of the team that will run it
  Precision precision = Precision::kF32;
  PackStore* packs = nullptr;  // never null
};

// Returns null if the kernel is the best form; the plan then calls it with tensors over its own memory.
using PrepareFn = std::function<std::unique_ptr<PreparedCall>(const PrepareArgs&)>;

}  // namespace tensord::ops
