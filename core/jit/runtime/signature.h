#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/jit/ir/graph.h"
#include "core/ops/value.h"

namespace tensord::jit {

// The key of a plan: dtype, sizes, strides and device of tensor arguments, values of numbers and strings, items of
// lists and tuples. Calls with equal signatures run the same plan.
class Signature {
 public:
  Signature() = default;
  // `arguments` of the graph's inputs, including self; objects, dicts and so on do not contribute.
  Signature(std::span<const ops::Value> arguments, int threads);

  bool operator==(const Signature& other) const { return hash_ == other.hash_ && words_ == other.words_; }
  uint64_t hash() const { return hash_; }
  int threads() const { return static_cast<int>(words_.empty() ? 1 : words_.front()); }
  // Whether it is small enough for a key.
  bool is_usable() const { return is_usable_; }

  // Compares without building a signature, for the common case that a worker sees the same one again.
  bool matches(std::span<const ops::Value> arguments, int threads) const;

 private:
  std::vector<int64_t> words_;
  uint64_t hash_ = 0;
  bool is_usable_ = true;
};

// What the signature tells of an argument: tensors become meta tensors, numbers and strings keep their values; None for
// everything else.
ops::Value abstract_value(const ops::Value& argument);

// Specializes a clone of a method's graph for the arguments' signature: inputs that are numbers, strings or None become
// constants, the others get their `known` value.
void specialize_inputs(Graph& graph, std::span<const ops::Value> arguments);

// "float32[1, 3, 224, 224], 5", for reports.
std::string describe_arguments(std::span<const ops::Value> arguments);

}  // namespace tensord::jit
