#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ops/registry.h"

namespace tensord::ops {

// Fills the tables of all operators. Before main it takes what OP and IMPL say; the first look-up has it build the
// tables, by the rules that stand here alone:
//   - what an operator's only function (impl) serves: views, compositions and script code every device, others the CPU;
//   - a complex cell without code has the dense cell's where the operator does not look at elements;
//   - devices without code of an operator that has RunsOnHost copy to the host and back (core/ops/runs_on_host.cpp);
//   - in-place and out= variants have code where what they are derived from has;
//   - functionalities of all devices ask who serves them (set_kernels), and calls fall through where there is nothing.
class TableBuilder {
 public:
  using Report = std::function<void(const std::string& problem)>;

  void set_function(Op& op, KernelFunction function);
  void set(Op& op, DispatchKey key, const KernelFunction& kernel);
  void set_same_as_dense(Op& op);
  void derive(DerivedKernels derived) { derived_.push_back(std::move(derived)); }
  void set_kernels(Functionality functionality, const KernelFunction* (*choose)(const Op& op)) {
    choosers_.emplace_back(functionality, choose);
  }
  void build(const std::vector<std::unique_ptr<Op>>& ops, const Report& report);

 private:
  const KernelFunction* keep(KernelFunction kernel) { return &kernels_.emplace_back(std::move(kernel)); }
  void fill_own(Op& op, KernelFunction* function, const Report& report);
  void fill_complex(Op& op);
  void fill_on_host(Op& op, const Report& report);
  void fill_derived_device(Op& op, const DerivedKernels& derived);
  void fill_variant(Op& op, const Report& report);
  void fill_functionalities(Op& op);

  std::deque<KernelFunction> kernels_;
  std::vector<std::pair<Op*, KernelFunction>> functions_;
  std::vector<Op*> same_as_dense_;
  std::vector<DerivedKernels> derived_;
  std::vector<std::pair<Functionality, const KernelFunction* (*)(const Op&)>> choosers_;
};

// Sets the arguments that the keys of a call come from.
void set_key_arguments(Op& op);

}  // namespace tensord::ops
