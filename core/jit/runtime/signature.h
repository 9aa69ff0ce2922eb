#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/jit/ir/graph.h"
#include "core/ops/value.h"

namespace tensord::jit {

// What a plan is made for: of tensor arguments the dtype, sizes, strides and device, of numbers
// and strings the value, of lists and tuples their items. Two calls of one signature run the
// same plan.
class Signature {
 public:
  Signature() = default;
  // `arguments` of the graph's inputs, self included; objects, dicts and the like say nothing.
  Signature(std::span<const ops::Value> arguments, int threads);

  bool operator==(const Signature& other) const { return hash_ == other.hash_ && words_ == other.words_; }
  uint64_t hash() const { return hash_; }
  int threads() const { return static_cast<int>(words_.empty() ? 1 : words_.front()); }
  // Whether it is small enough to be a key.
  bool is_usable() const { return is_usable_; }

  // Compares without making a signature: for the common case that a worker sees the same again.
  bool matches(std::span<const ops::Value> arguments, int threads) const;

 private:
  std::vector<int64_t> words_;
  uint64_t hash_ = 0;
  bool is_usable_ = true;
};

// What is known of an argument by its signature alone: tensors as meta tensors, numbers and
// strings as themselves; None where nothing is.
ops::Value abstract_value(const ops::Value& argument);

// Writes into a clone of a method's graph what the arguments' signature says: inputs that are
// numbers, strings or None become constants, the others get their `known` value.
void specialize_inputs(Graph& graph, std::span<const ops::Value> arguments);

// "float32[1, 3, 224, 224], 5", for reports.
std::string describe_arguments(std::span<const ops::Value> arguments);

}  // namespace tensord::jit
