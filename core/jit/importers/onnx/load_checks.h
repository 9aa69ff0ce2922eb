#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/importers/onnx/function_walk.h"
#include "core/jit/importers/onnx/proto.h"

namespace tensord::jit::onnx {

// Finds nodes that fail for every request by inferring each node with the declared shapes, so that such errors are
// reported at load and not at the first request. Sizes that a request chooses are tried with several numbers. Only a
// failure with the same message for all of them counts, because otherwise the error is about a size.
class LoadChecks {
 public:
  // `tensor_of` returns the constant or weight that a value is, or an undefined tensor.
  LoadChecks(const OperatorLibrary& library, std::function<Tensor(const GraphValue*)> tensor_of)
      : walk_(library), tensor_of_(std::move(tensor_of)) {}

  // Declares a type that requests must match.
  void declare(const GraphValue* value, const TypeProto& type);
  // Declares a type that the file states but no run enforces: its rank is used if it is not known otherwise.
  void declare_rank(const GraphValue* value, const TypeProto& type);
  // Sets a shape if nothing else is known; sizes of -1 are the request's.
  void set_shape(const GraphValue* value, const Dims& sizes, DType dtype);
  // The rank, dtype and, for a vector, length of a tensor in every run; nullopt if unknown.
  std::optional<int64_t> rank(const GraphValue* value);
  // The sizes in every run, -1 for those that are the request's; empty if the rank is unknown.
  Dims sizes(const GraphValue* value);
  std::optional<DType> dtype(const GraphValue* value);
  std::optional<int64_t> length(const GraphValue* value);
  // Whether its sizes are the same in every run.
  bool has_one_shape(const GraphValue* value);
  // The value is one of the two, of which it has the rank that they share.
  void set_one_of(const GraphValue* value, const GraphValue* a, const GraphValue* b);
  // The value equals `other`; null: unknown from now on.
  void set(const GraphValue* value, const GraphValue* other);
  // The value is one along this dimension of `of`.
  void set_item(const GraphValue* value, const GraphValue* of, int64_t axis);
  // A state of a loop as a round gets it that begins with `carried`: of its shape, where it is the first one, else of
  // its rank alone, as any round.
  void set_state(const GraphValue* state, const GraphValue* carried, bool is_first);
  // Whether a round that gets what is known of `state` leaves the same behind, so that every round gets it.
  bool keeps_state(const GraphValue* state, const GraphValue* after, bool is_first);

  // Throws Error{kDataLoss} if every run of the call fails; otherwise records what is known of the result.
  void call(const Function& function, std::span<GraphValue* const> arguments, const GraphValue* result);
  // Does the same for a node that unpacks results.
  void node(const Node& node) { for_each_output(node); }

  // The number's value in every run; nullopt if unknown.
  std::optional<int64_t> number(const GraphValue* value);

  // During its lifetime, calls are in a branch that a run may not reach.
  class Branch {
   public:
    explicit Branch(LoadChecks* checks) : checks_(checks) {
      if (checks_) checks_->branches_.emplace_back();
    }
    ~Branch() {
      if (checks_) checks_->branches_.pop_back();
    }
    Branch(const Branch&) = delete;
    Branch& operator=(const Branch&) = delete;
    // Why every run that takes the branch fails.
    std::optional<std::string> failure() const { return checks_ ? checks_->branches_.back() : std::nullopt; }

   private:
    LoadChecks* checks_;
  };
  // Records that the current code fails, with the reason.
  void fail_here(const std::string& why);

 private:
  // One value for all choices of sizes, or one for each choice.
  using Choices = std::vector<Known>;

  const Choices& known(const GraphValue* value);
  // The tensors of each choice; empty if one of them is not a known tensor.
  std::vector<Tensor> tensors(const GraphValue* value);
  Choices computed(const GraphValue* value);
  void for_each_output(const Node& node);
  // Calls `run(choice)` for one choice or all. Returns the error that all of them have in common, or "".
  template <class Run>
  std::string run_choices(bool is_one, const Run& run);
  bool others_help(const Function& function, const std::vector<const Choices*>& given, const std::string& why);
  void check_attributes(const Function& function, const std::vector<const Choices*>& given);
  int64_t size_of(const std::string& name, size_t choice);
  Choices choices_of(const TypeProto& type, const std::string& name, bool takes_sizes);

  FunctionWalk walk_;
  std::function<Tensor(const GraphValue*)> tensor_of_;
  std::unordered_map<const GraphValue*, Choices> known_;
  std::map<std::string, int64_t> numbers_;            // by name of the size
  std::vector<std::optional<std::string>> branches_;  // enclosing branches, with the failure of each
};

}  // namespace tensord::jit::onnx
