#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/formats/onnx/function_walk.h"
#include "core/jit/formats/onnx/proto.h"

namespace tensord::jit::onnx {

// Finds the nodes that fail whatever a request brings, by going through each with the shapes that the file says: nobody
// should be told at the first request what is known at load. Sizes that a request chooses stand for several numbers,
// one after the other, and only what fails with all of them, and says the same each time, fails for its own sake: where
// a size is to blame the error names it.
class LoadChecks {
 public:
  // `tensor_of` gives the constant or weight that a value is, an undefined tensor for others.
  LoadChecks(const OperatorLibrary& library, std::function<Tensor(const GraphValue*)> tensor_of)
      : walk_(library), tensor_of_(std::move(tensor_of)) {}

  // What requests are held to.
  void declare(const GraphValue* value, const TypeProto& type);
  // What the file says of a value, which no run is held to: how many dimensions it has, where that is not known.
  void declare_rank(const GraphValue* value, const TypeProto& type);
  // It has so many dimensions, of sizes that are not known, where nothing else is.
  void set_rank(const GraphValue* value, int64_t rank, DType dtype);
  // What a tensor's rank, type and, of a vector, length is in every run; nothing where that is not known.
  std::optional<int64_t> rank(const GraphValue* value);
  std::optional<DType> dtype(const GraphValue* value);
  std::optional<int64_t> length(const GraphValue* value);
  // Whether its sizes are the same in every run.
  bool has_one_shape(const GraphValue* value);
  // The value is one of the two, of which it has the rank that they share.
  void set_one_of(const GraphValue* value, const GraphValue* a, const GraphValue* b);
  // The value is what `other` is; null: not known any more.
  void set(const GraphValue* value, const GraphValue* other);
  // The value is one along this dimension of `of`.
  void set_item(const GraphValue* value, const GraphValue* of, int64_t axis);
  // A state of a loop as a round gets it that begins with `carried`: of its shape, where it is the first one, else of
  // its rank alone, as any round.
  void set_state(const GraphValue* state, const GraphValue* carried, bool is_first);
  // Whether a round that gets what is known of `state` leaves the same behind, so that every round gets it.
  bool keeps_state(const GraphValue* state, const GraphValue* after, bool is_first);

  // Throws Error{kDataLoss} where every run of the call fails; else keeps what is known of the result.
  void call(const Function& function, std::span<GraphValue* const> arguments, const GraphValue* result);
  // The same for a node that takes results apart.
  void node(const Node& node) { for_each_output(node); }

  // What the number is in every run; nothing where that is not known.
  std::optional<int64_t> number(const GraphValue* value);

  // While it lives, a run may not come to what is called, except for those that come here.
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
    // Why who comes here fails.
    std::optional<std::string> failure() const { return checks_ ? checks_->branches_.back() : std::nullopt; }

   private:
    LoadChecks* checks_;
  };
  // What is gone through now fails, for this reason.
  void fail_here(const std::string& why);

 private:
  // One for all sizes that requests choose, or one for each of them.
  using Choices = std::vector<Known>;

  const Choices& known(const GraphValue* value);
  // Of each choice; empty where one of them is no tensor that is known.
  std::vector<Tensor> tensors(const GraphValue* value);
  Choices computed(const GraphValue* value);
  void for_each_output(const Node& node);
  // Calls `run(choice)` for one choice or all; what all of them fail of, "" where there is no such thing.
  template <class Run>
  std::string run_choices(bool is_one, const Run& run);
  bool others_help(const Function& function, const std::vector<const Choices*>& given, const std::string& why);
  void check_attributes(const Function& function, const std::vector<const Choices*>& given);
  int64_t size_of(const std::string& name, size_t choice);
  Choices choices_of(const TypeProto& type, const std::string& name, bool takes_sizes);

  FunctionWalk walk_;
  std::function<Tensor(const GraphValue*)> tensor_of_;
  std::unordered_map<const GraphValue*, Choices> known_;
  std::map<std::string, int64_t> numbers_;            // of names of sizes
  std::vector<std::optional<std::string>> branches_;  // that are gone through, with what fails in each
};

}  // namespace tensord::jit::onnx
