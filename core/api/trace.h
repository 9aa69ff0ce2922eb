#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tensord::jit {

struct TraceOptions {
  // States that the function never reads a size as a number, so that the archive may accept other input sizes. The
  // trace cannot see this by itself; without the option the archive rejects inputs of other shapes than the traced
  // ones. The archive always checks ranks and dtypes.
  bool any_sizes = false;
  // Further complete lists of inputs. The archive must give the same results as the function for each of them.
  std::vector<nn::Tensors> check_inputs = {};
  double rtol = 1e-5, atol = 1e-5;
  std::vector<std::string> input_names = {};  // "input_0", "input_1" … where there is none
};

// Runs the module once in its current mode (train or eval) and writes the operators it called as a TorchScript archive.
// The archive has the parameters and buffers under their names; PyTorch, `Module::load` and the daemon can read it. The
// module's buffers are restored afterwards. Numbers, and tensors that are neither inputs nor parts of the module,
// become constants with their values of that run. Control flow in C++ that depends on tensor elements is lost;
// `check_inputs` detect this. One result becomes a tensor, several become a tuple. Throws Error: kUnimplemented for
// what a graph cannot express (a generator, a write to a tensor from outside), kFailedPrecondition where an operator
// returned elements as numbers or where the archive and the module give different results.
void save_trace(const std::string& path, nn::Module& module, const nn::Tensors& inputs,
                const TraceOptions& options = {});
// Does the same for a function without parameters.
void save_trace(const std::string& path, const std::function<nn::Tensors(const nn::Tensors&)>& function,
                const nn::Tensors& inputs, const TraceOptions& options = {});

}  // namespace tensord::jit
