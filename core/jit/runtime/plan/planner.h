#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// Builds one Plan: first the calls with their tensors, then the memory.
class Planner {
 public:
  Planner(const Node& node, const PlanSettings& settings, Plan& plan) : node_(node), settings_(settings), plan_(plan) {}
  void build();

 private:
  // A graph value in the plan: a constant, a tensor, or a list of these. Meta tensors in `value` stand for `tensors`,
  // in order.
  struct Operand {
    ops::Value value;
    std::vector<uint32_t> tensors;
  };

  void add_inputs();
  void add_node(const Node& node);
  void add_list(const Node& node);
  void add_unpacked(const Node& node);
  void add_call(const Node& node);
  void add_outputs();

  Operand operand_of(const GraphValue* value) const;
  // Adds tensors for a node's results if they are views of its operands.
  bool add_views(const Node& node, std::span<const uint32_t> inputs);
  uint32_t add_tensor(const Tensor& meta);
  uint32_t add_view(const Tensor& meta, uint32_t of);
  void define(const GraphValue* value, const ops::Value& known, std::vector<uint32_t> tensors);
  void describe_call(PlanCall& call, const Node& node) const;

  const Node& node_;
  const PlanSettings& settings_;
  Plan& plan_;
  std::unordered_map<const GraphValue*, Operand> operands_;
  std::vector<bool> escapes_;  // by root: returned with the results
};

}  // namespace tensord::jit
