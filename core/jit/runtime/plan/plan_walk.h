#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/jit/runtime/plan/batch_tile_loop.h"
#include "core/jit/runtime/plan/plan.h"
#include "core/jit/runtime/plan/plan_contents.h"
#include "core/jit/runtime/plan/plan_verifier.h"

namespace tensord::jit {

// The implementation of verify_plan. The graph determines which value each call must find; values are numbered in the
// order of creation.
class PlanWalk {
 public:
  PlanWalk(const Plan& plan, const Node& node) : plan_(plan), node_(node), memory_(plan) {}
  void run();

 private:
  // A tensor of a graph value (lists are flattened), and its position in the value that it views.
  struct Held {
    Tensor tensor;
    int32_t value = -1;     // -1: a constant
    int64_t from_base = 0;  // bytes from the value's first element
  };
  using Operands = std::vector<Held>;

  struct Range {
    PlanRoot::Kind kind = PlanRoot::Kind::kArena;
    uint32_t index = 0;  // of the input or output
    int64_t begin = 0, end = 0;
    bool overlaps(const Range& other) const;
  };

  // The memory of a plan, or of a loop's body for one tile.
  struct Memory {
    explicit Memory(const Plan& of) : plan(of), inputs(of.inputs.size()), outputs(of.output_bytes.size()) {}
    PlanContents& at(const Range& range);
    const Plan& plan;
    PlanContents arena;
    std::vector<PlanContents> inputs, outputs;
  };

  // A loop whose calls are being walked.
  struct Loop {
    const PlanCall* call = nullptr;
    size_t next = 0;            // index of the next call in the bodies
    std::vector<Memory> parts;  // for one tile each
    // For values made in it: the whole tensor, over all samples.
    std::unordered_map<int32_t, Tensor> made;
  };

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw PlanRefused(concat("a plan is refused: ", place_, parts...));
  }
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) refuse(parts...);
  }
  void set_place(const PlanCall& call, const Node& node);

  // In plan_walk.cpp.
  void take_inputs();
  void visit(const Node& node);
  void visit_call(const Node& node);
  void unpack(const Node& node);
  void give_outputs();
  void check_movable(const PlanOutput& output) const;
  bool is_read_back(const Range& whole) const;
  Operands operands_of(const GraphValue* value) const;
  Operands inputs_of(const Node& node) const;
  bool make_views(const Node& node, const Operands& inputs);
  std::vector<Tensor> results_of(const Node& node) const;
  void define_results(const Node& node, std::span<const Tensor> results, std::span<const int32_t> numbers);

  // In plan_walk_call.cpp: checks for calls of a plan and of a loop's body.
  Range range_of(const Plan& plan, uint32_t tensor) const;
  Range scratch_of(const PlanCall& call) const;
  void check_within(const Plan& plan, const Range& range, const PlanTensor& tensor) const;
  void check_operands(const PlanCall& call, const Node& node, const Plan& plan, const Operands& expected,
                      std::span<const Tensor> results) const;
  void check_copy(const PlanCall& call, const Plan& plan) const;
  void check_hazards(const PlanCall& call, const Plan& plan) const;
  bool may_lie_on(const PlanCall& call, const Plan& plan, size_t input) const;
  void write(Memory& memory, const PlanCall& call, std::span<const int32_t> numbers) const;
  void call(const PlanCall& call, const Node& node, const Operands& inputs, std::span<const Tensor> results);

  // In plan_walk_loop.cpp.
  void begin_loop(const PlanCall& call);
  void check_parts(const SampleLoop& loop, const PlanCall& call) const;
  void loop_call(const Node& node, const Operands& inputs, std::span<const Tensor> results);
  void body_call(size_t part, const Node& node, const Operands& inputs, std::span<const Tensor> results,
                 std::span<const int32_t> numbers);
  void read_in_loop(size_t part, uint32_t tensor, const Held& held, bool is_shared);
  void check_landing(size_t part, uint32_t tensor, const Tensor& whole) const;
  void end_loop();

  const Plan& plan_;
  const Node& node_;  // the prim::Plan node
  Memory memory_;
  std::unordered_map<const GraphValue*, Operands> values_;
  std::optional<Loop> loop_;
  size_t next_call_ = 0;
  int32_t value_count_ = 0;
  std::string place_;  // location for messages
};

// Bytes from a tensor's first element to the end of its last. Throws PlanRefused for negative strides.
int64_t plan_extent(const Tensor& meta);
bool is_same_plan_layout(const Tensor& a, const Tensor& b);

}  // namespace tensord::jit
