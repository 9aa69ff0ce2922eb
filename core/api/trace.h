#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tensord::jit {

struct TraceOptions {
  // The function reads no size as a number, so that the archive may take inputs of other sizes. Not seen by the trace:
  // without it the archive refuses inputs of other shapes than the traced ones. Ranks and dtypes are always checked.
  bool any_sizes = false;
  // Inputs, each a list of all, on which the archive must give what the function gives, beside those it is traced with.
  std::vector<nn::Tensors> check_inputs = {};
  double rtol = 1e-5, atol = 1e-5;
  std::vector<std::string> input_names = {};  // "input_0", "input_1" … where there is none
};

// Runs the module once, as it is (train or eval), and writes the operators that it called as a TorchScript archive with
// its parameters and buffers by their names, which PyTorch, `Module::load` and the daemon read. The module's buffers
// are afterwards what they were. Numbers, and tensors that are neither inputs nor the module's, are what they were in
// that run: what depends on elements by way of C++ is lost, which `check_inputs` are for. One result is a tensor,
// several are a tuple. Throws Error: kUnimplemented for what no graph has (a generator, writes to a tensor from
// outside), kFailedPrecondition where an operator gave elements as numbers, or the archive gives something else than
// the module.
void save_trace(const std::string& path, nn::Module& module, const nn::Tensors& inputs,
                const TraceOptions& options = {});
// The same of a function without parameters.
void save_trace(const std::string& path, const std::function<nn::Tensors(const nn::Tensors&)>& function,
                const nn::Tensors& inputs, const TraceOptions& options = {});

}  // namespace tensord::jit
